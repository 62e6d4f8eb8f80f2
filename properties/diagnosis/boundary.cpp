#include "properties/diagnosis/boundary.hpp"

#include <bit>
#include <boost/math/distributions/hypergeometric.hpp>
#include <map>
#include <numeric>
#include <utility>

#include "properties/diagnosis/condition.hpp"

namespace attest::diagnosis {

namespace {

constexpr std::size_t points_max = 400;  // so many points can still be looked at in a record

/// A set of cases as bits.
class CaseBits {
public:
    explicit CaseBits(std::size_t count) : words_((count + 63) / 64) {}
    void set(std::size_t n) { words_[n / 64] |= std::uint64_t{1} << (n % 64); }
    std::int64_t count() const {
        std::int64_t total = 0;
        for (const std::uint64_t w : words_) total += std::popcount(w);
        return total;
    }
    CaseBits operator&(const CaseBits& o) const {
        CaseBits both = *this;
        for (std::size_t n = 0; n < words_.size(); ++n) both.words_[n] &= o.words_[n];
        return both;
    }

private:
    std::vector<std::uint64_t> words_;
};

struct Separation {
    bool any = false;
    std::size_t first = 0, second = 0;  // relations; equal: one alone
    std::int64_t inside = 0, inside_failed = 0;
};

constexpr double accepted = 1.0 / 100;  // of runs report a relation that is none

/// The cases of several laws, one law after the other.
struct CasesOfLaws {
    std::vector<CaseBits> laws;  ///< which cases are whose
    CaseBits failing;

    // All failures lie among the cases `inside`, of those `among`. Were each law's F spread at
    // random over its own, which it draws as it needs them, that would have probability
    // C(inside, F) / C(of, F) = prod_k (inside - k) / (of - k), for all laws together the product.
    // So many of the first law's failures prove nothing.
    double chance(const CaseBits& inside, const CaseBits& among, std::int64_t told_by) const {
        double p = 1;
        for (const CaseBits& law : laws) {
            const std::int64_t in = (inside & law).count(), of = (among & law).count(),
                               failed = (failing & law).count();
            for (std::int64_t k = told_by; k < failed; ++k)
                p *= static_cast<double>(in - k) / static_cast<double>(of - k);
            told_by = 0;
        }
        return p;
    }
};

// That of F failures spread at random over the cases at least k lie among the `inside`: the upper
// tail of the hypergeometric distribution.
double chance_of_at_least(std::int64_t k, std::int64_t inside, std::int64_t of,
                          std::int64_t failed) {
    const boost::math::hypergeometric_distribution<double> spread(
        static_cast<std::uint64_t>(failed), static_cast<std::uint64_t>(inside),
        static_cast<std::uint64_t>(of));
    return k == 0 ? 1 : boost::math::cdf(complement(spread, static_cast<std::uint64_t>(k - 1)));
}

std::string joined(const Condition& a, const Condition& b) {
    if (!a.condition.empty() && !b.condition.empty())
        return "only " + a.says + " and " + b.condition;
    return "only " + a.says + ", " + b.says;
}

void draw(Boundary& boundary, const std::vector<const search::CaseRecord*>& cases) {
    std::map<std::array<std::int64_t, 2>, std::int64_t> points;
    for (const search::CaseRecord* record : cases) {
        std::array<std::int64_t, 2> at{};
        for (std::size_t n = 0; n < boundary.axes.size(); ++n)
            at[n] = quantity_of(record->tried.problem, boundary.axes[n]);
        const bool failed = record->verdict.decision == law::Decision::violated;
        // A place where one case fails is drawn as failing.
        auto& value = points[at];
        value = std::max<std::int64_t>(value, failed ? 1 : 0);
    }
    for (const auto& [at, failed] : points)
        if (failed != 0 && boundary.points.size() < points_max)
            boundary.points.push_back({at[0], at[1], 1});
    for (const auto& [at, failed] : points)
        if (failed == 0 && boundary.points.size() < points_max)
            boundary.points.push_back({at[0], at[1], 0});
}

/// The relations that may be asked, and how many of the failing cases told which they are: those
/// prove nothing.
struct Hypotheses {
    std::vector<std::size_t> relations;
    std::int64_t told_by = 0;
};

Separation search(const Hypotheses& asked, const std::vector<CaseBits>& true_of,
                  const CasesOfLaws& cases, const CaseBits& every) {
    const CaseBits& failing = cases.failing;
    const std::int64_t failed = failing.count(), of = every.count();
    const auto chance = [&](const CaseBits& inside, const CaseBits& among) {
        return cases.chance(inside, among, asked.told_by);
    };
    std::vector<std::size_t> necessary;
    for (const std::size_t n : asked.relations)
        if ((true_of[n] & failing).count() == failed && true_of[n].count() < of)
            necessary.push_back(n);
    Separation best;
    for (const std::size_t n : necessary) {
        const std::int64_t inside = true_of[n].count();
        if (!best.any || inside < best.inside) best = {true, n, n, inside, failed};
    }
    if (!best.any) return best;
    // Two relations are worth their words where they leave at most half of the holding cases inside
    // that one leaves, and where the second parts those that the first leaves beyond chance: many
    // others were tried for it too, and what the first tells says nothing for the second.
    const std::int64_t holding = best.inside - failed;
    const double singles = static_cast<double>(asked.relations.size());
    const double pairs = singles * (singles - 1) / 2;
    Separation pair;
    for (std::size_t a = 0; a < necessary.size(); ++a)
        for (std::size_t b = a + 1; b < necessary.size(); ++b) {
            std::size_t first = necessary[a], second = necessary[b];
            const CaseBits both = true_of[first] & true_of[second];
            const std::int64_t inside = both.count();
            if (2 * (inside - failed) > holding || inside >= best.inside ||
                (pair.any && inside >= pair.inside))
                continue;
            // The more telling one first.
            if (true_of[second].count() < true_of[first].count()) std::swap(first, second);
            if (chance(both, every) * pairs <= accepted &&
                chance(both, true_of[first]) * singles <= accepted)
                pair = {true, first, second, inside, failed};
        }
    if (pair.any) return pair;
    if (chance(true_of[best.first], every) * singles <= accepted) return best;
    return {};
}

// What the smallest case could not do without, a feature or a size to the last one: of one failing
// case it is known to matter, so that few others show that it does for all.
Hypotheses kept_by(const Case& smallest, const std::vector<Condition>& all) {
    static const Case plain = parse_case("b1 hq1 hkv1 tq1 tk1 d1 f32");
    Hypotheses asked{{}, 1};
    for (std::size_t n = 0; n < all.size(); ++n) {
        if (all[n].of_values || !all[n].holds(smallest) || all[n].holds(plain)) continue;
        Case smaller = smallest;
        lower(smaller.problem, all[n].quantity);
        if (all[n].quantity.empty() || !all[n].holds(smaller)) asked.relations.push_back(n);
    }
    return asked;
}

// Where no relation is fulfilled by every failure: the one under which cases fail most often,
// against the others. Both sides must have been tried; at least half more of the cases inside must
// fail than of those outside.
Separation mostly(const std::vector<CaseBits>& true_of, const CaseBits& failing, std::int64_t of) {
    const std::int64_t failed = failing.count();
    Separation best;
    double most = 0.5;
    for (std::size_t n = 0; n < true_of.size(); ++n) {
        const std::int64_t inside = true_of[n].count();
        if (inside == 0 || inside == of) continue;
        const std::int64_t k = (true_of[n] & failing).count();
        const double difference =
            static_cast<double>(k) / static_cast<double>(inside) -
            static_cast<double>(failed - k) / static_cast<double>(of - inside);
        if (difference <= most ||
            chance_of_at_least(k, inside, of, failed) * static_cast<double>(true_of.size()) >
                accepted)
            continue;
        most = difference;
        best = {true, n, n, inside, k};
    }
    return best;
}

}  // namespace

Boundary find_boundary(const std::vector<const std::vector<search::CaseRecord>*>& laws,
                       const Case* smallest) {
    std::vector<const search::CaseRecord*> cases;
    std::vector<std::size_t> ends;
    for (const std::vector<search::CaseRecord>* records : laws) {
        for (const search::CaseRecord& record : *records)
            if (record.number >= 0 && (record.verdict.decision == law::Decision::violated ||
                                       record.verdict.decision == law::Decision::holds))
                cases.push_back(&record);
        ends.push_back(cases.size());
    }
    const std::vector<Condition> all = conditions();
    const CaseBits none(cases.size());
    std::vector<CaseBits> true_of(all.size(), none);
    CasesOfLaws of_laws{std::vector<CaseBits>(laws.size(), none), none};
    CaseBits every = none;
    for (std::size_t k = 0, law = 0; k < cases.size(); ++k) {
        while (k >= ends[law]) ++law;
        of_laws.laws[law].set(k);
        every.set(k);
        if (cases[k]->verdict.decision == law::Decision::violated) of_laws.failing.set(k);
        for (std::size_t n = 0; n < all.size(); ++n)
            if ((smallest == nullptr || all[n].holds(*smallest)) && all[n].holds(cases[k]->tried))
                true_of[n].set(k);
    }
    Boundary boundary;
    const std::int64_t of = every.count(), failed = of_laws.failing.count();
    Separation found;
    Hypotheses relations;
    relations.relations.resize(all.size());
    std::iota(relations.relations.begin(), relations.relations.end(), std::size_t{0});
    if (failed > 0 && failed < of) found = search(relations, true_of, of_laws, every);
    if (!found.any && smallest != nullptr && failed > 1 && failed < of)
        found = search(kept_by(*smallest, all), true_of, of_laws, every);
    if (!found.any && failed > 0 && failed < of && laws.size() == 1)
        found = mostly(true_of, of_laws.failing, of);
    const bool always = found.any && found.inside_failed == failed;
    boundary.axes = {"len_kv", "len_q"};
    if (found.any) {
        const Condition &a = all[found.first], &b = all[found.second];
        boundary.found = true;
        boundary.says = !always                       ? "mostly " + a.says
                        : found.first == found.second ? "only " + a.says
                                                      : joined(a, b);
        boundary.inside = found.inside;
        boundary.inside_failed = found.inside_failed;
        boundary.outside_failed = failed - found.inside_failed;
        boundary.outside = of - found.inside;
        if (always && !a.of_values && !b.of_values)
            boundary.holds = [first = a.holds, second = b.holds](const Problem& p) {
                const Case tried{.problem = p};
                return first(tried) && second(tried);
            };
        const std::string other = !a.other.empty()           ? a.other
                                  : b.quantity != a.quantity ? b.quantity
                                                             : std::string();
        if (!a.quantity.empty()) boundary.axes = {a.quantity, other.empty() ? "len_q" : other};
        if (boundary.axes[0] == boundary.axes[1]) boundary.axes[1] = "len_kv";
    } else {
        boundary.says = failed < of        ? "no pattern found"
                        : laws.size() == 1 ? "all that its law tried"
                                           : "all that its laws tried";
        boundary.inside = of;
        boundary.inside_failed = failed;
    }
    draw(boundary, cases);
    return boundary;
}

void Boundary::hear(const Problem& wrong) {
    if (!holds || holds(wrong)) return;
    found = false;
    holds = {};
    says = "no pattern found";
    inside += std::exchange(outside, 0);
    inside_failed += std::exchange(outside_failed, 0);
}

Boundary find_boundary(const std::vector<search::CaseRecord>& records, const Case* smallest) {
    return find_boundary(std::vector{&records}, smallest);
}

}  // namespace attest::diagnosis
