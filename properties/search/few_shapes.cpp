#include "properties/search/few_shapes.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "properties/search/derive.hpp"
#include "properties/search/kernel_trial.hpp"
#include "reference/problem/counter.hpp"
#include "reference/problem/errors.hpp"
#include "reference/problem/validity.hpp"

namespace attest::search {

namespace {

/// Draws that a law proposes, and cases of which it is found out what else it asks about.
constexpr std::int64_t proposals = 4, scouted = 6;
/// Shapes of one case at most; attempts of a slot that vary the planned case.
constexpr std::size_t shapes_a_case = 12;
constexpr std::int64_t varied_attempts = 8;

/// The truth in the kernel's place, which notes the shapes that a law asks about.
class Scout final : public TruthTrial {
public:
    using TruthTrial::TruthTrial;
    TensorSet run(const Problem& problem, const TensorSet& inputs) const override {
        note(problem);
        return TruthTrial::run(problem, inputs);
    }
    TensorSet backward(const Problem& problem, const TensorSet& inputs,
                       const std::vector<Role>& wanted) const override {
        note(problem);
        return TruthTrial::backward(problem, inputs, wanted);
    }
    mutable std::set<std::string> shapes;

private:
    void note(const Problem& problem) const {
        shapes.insert(shape_of(problem));
        if (shapes.size() > shapes_a_case) throw law::Stopped{};
    }
};

/// The shapes that the law asks about with this case; none where it does not apply, or asks about
/// too many.
std::optional<std::set<std::string>> shapes_asked(Kernel& kernel, const law::Property& law,
                                                  const Case& tried) {
    try {
        std::string reason;
        if (!kernel.supports(tried.problem, &reason)) return std::nullopt;
        const KernelTrial given(kernel, tried);
        const law::Plan plan = law.check(given);
        const auto* judge = std::get_if<law::Judge>(&plan);
        if (judge == nullptr) return std::nullopt;
        const Scout scout(given);
        const law::Judgement judgement = (*judge)(scout);
        if (judgement.compared_nothing()) return std::nullopt;
        scout.shapes.insert(shape_of(tried.problem));
        return scout.shapes;
    } catch (const law::Stopped&) {
    } catch (const NoAnswer&) {
    } catch (const BadInput&) {
    }
    return std::nullopt;
}

/// What stands in a problem, as numbers: its features, formats, and how its sizes lie.
std::vector<int> shape_traits(const Problem& p) {
    std::vector<int> traits;
    const FeatureSet features = features_of(p);
    for (int f = 0; f < feature_count; ++f)
        if (features.has(static_cast<Feature>(f))) traits.push_back(f);
    int at = feature_count;
    const auto one_of = [&](std::initializer_list<bool> is) {
        for (const bool each : is) {
            if (each) traits.push_back(at);
            ++at;
        }
    };
    for (const Precision format : {Precision::f64, Precision::f32, Precision::f16, Precision::bf16})
        one_of({p.format_q == format});
    one_of({p.len_q == 1, p.len_q == p.len_kv, p.len_q > p.len_kv, p.len_kv % 16 != 0,
            p.len_kv > 64, p.len_kv > 128});
    one_of({p.batch > 1, p.heads_kv > 1, p.dim_qk % 8 != 0, p.dim_qk <= 32, p.dim_qk > 64});
    return traits;
}

using Pairs = std::set<std::pair<int, int>>;
Pairs pairs_of(const Problem& p) {
    const std::vector<int> traits = shape_traits(p);
    Pairs pairs;
    for (std::size_t a = 0; a < traits.size(); ++a)
        for (std::size_t b = a; b < traits.size(); ++b) pairs.emplace(traits[a], traits[b]);
    return pairs;
}

/// Other lengths, and another pattern of the mask, within the same shape.
Problem varied(const Problem& base, const Problem& drawn, std::uint64_t bits) {
    Problem p = base;
    std::uint64_t index = 0;
    const auto cut = [&](std::vector<std::int64_t>& lens, std::int64_t most) {
        for (std::int64_t& n : lens)
            n = 1 + static_cast<std::int64_t>(
                        counter_bits(bits, 1, index++) %
                        static_cast<std::uint64_t>(std::max<std::int64_t>(most, 1)));
    };
    cut(p.mask.lens_q, p.len_q);
    cut(p.mask.lens_kv, p.len_kv);
    MaskTensor& mask = p.mask.tensor;
    if (mask.kind != MaskKind::none && mask.kind == drawn.mask.tensor.kind) {
        mask.pattern = drawn.mask.tensor.pattern;
        mask.tile = drawn.mask.tensor.tile;
        mask.floor = drawn.mask.tensor.floor;
    }
    return canonical(p);
}

}  // namespace

std::string shape_of(const Problem& problem) {
    Problem p = problem;
    for (auto* lens : {&p.mask.lens_q, &p.mask.lens_kv})
        std::fill(lens->begin(), lens->end(), std::int64_t{1});
    for (auto* lens : {&p.mask.documents_q, &p.mask.documents_kv})
        if (!lens->empty()) *lens = {std::ssize(*lens)};
    const MaskTensor plain;
    p.mask.tensor.pattern = plain.pattern;
    p.mask.tensor.tile = plain.tile;
    p.mask.tensor.floor = plain.floor;
    return print(p);
}

/// What the shapes are chosen from, law by law.
struct FewShapes::Choice {
    Choice(std::span<const law::Property> all, Kernel& k, const Capability& c, const Profile& p,
           std::uint64_t s)
        : laws(all), kernel(k), capability(c), profile(p), seed(s) {}

    void propose() {
        for (const law::Property& law : laws) {
            std::int64_t found = 0;
            for (std::int64_t n = 0; n < 4 * proposals && found < proposals; ++n)
                if (auto drawn = search::draw({law, capability, profile}, seed, n % proposals, n)) {
                    pool.push_back(std::move(*drawn));
                    ++found;
                }
        }
    }

    /// The proposals, those first that bring most pairs not seen yet; the smaller one of equals.
    std::vector<Case> spread(std::size_t most) const {
        std::vector<Pairs> pairs;
        for (const Case& c : pool) pairs.push_back(pairs_of(c.problem));
        std::vector<Case> out;
        Pairs seen;
        std::vector<bool> taken(pool.size(), false);
        while (out.size() < most) {
            std::size_t best = pool.size();
            std::pair<std::int64_t, std::int64_t> gain{0, 0};
            for (std::size_t at = 0; at < pool.size(); ++at) {
                if (taken[at]) continue;
                std::int64_t fresh = 0;
                for (const auto& pair : pairs[at]) fresh += !seen.contains(pair);
                const std::pair of{fresh, -score_count(pool[at].problem)};
                if (best == pool.size() || of > gain) {
                    best = at;
                    gain = of;
                }
            }
            if (best == pool.size() || gain.first == 0) break;
            taken[best] = true;
            seen.insert(pairs[best].begin(), pairs[best].end());
            out.push_back(pool[best]);
        }
        return out;
    }

    /// Cases of the law in these shapes, and what else it asks about with each.
    std::vector<Planned> scout(const law::Property& law, const std::vector<Case>& bases) const {
        std::vector<Planned> found;
        std::int64_t tried = 0;
        bool alone = true;
        for (const Case& base : bases) {
            Case c = base;
            if (!in_space(law, capability, c.problem)) continue;
            if (!in_space(law, c.values)) c.values.kind = law.cases.kinds.front();
            if (tried++ >= scouted) {
                // A law that asks about nothing else asks about nothing else here.
                if (alone) found.push_back({c, {shape_of(c.problem)}});
                continue;
            }
            auto shapes = shapes_asked(kernel, law, c);
            if (!shapes) continue;
            alone = alone && shapes->size() == 1;
            found.push_back({std::move(c), std::move(*shapes)});
        }
        return found;
    }

    std::span<const law::Property> laws;
    Kernel& kernel;
    const Capability& capability;
    const Profile& profile;
    std::uint64_t seed;
    std::vector<Case> pool;
};

FewShapes::FewShapes(std::span<const law::Property> laws, Kernel& kernel,
                     const Capability& capability, const CampaignOptions& options,
                     const std::vector<StoredFailure>& stored)
    : most_(options.shapes.value()) {
    const std::int64_t most = most_;
    const auto room = [&](const std::set<std::string>& shapes) {
        std::int64_t fresh = 0;
        for (const std::string& shape : shapes) fresh += !chosen_.contains(shape);
        return most - std::ssize(chosen_) - fresh;
    };
    for (const StoredFailure& failure : stored)
        if (std::ssize(chosen_) < most / 2) chosen_.insert(shape_of(failure.tried.problem));
    Choice choice(laws, kernel, capability, options.profile, options.seed);
    choice.propose();
    // Half of the room for traits in pairs, the other half for what laws ask about beside them.
    const std::vector<Case> bases =
        choice.spread(static_cast<std::size_t>(std::max<std::int64_t>(1, most / 2)));
    for (const Case& base : bases)
        if (room({shape_of(base.problem)}) >= 0) chosen_.insert(shape_of(base.problem));
    std::map<std::string, std::vector<Planned>, std::less<>> planned;
    for (const law::Property& law : laws) {
        auto& own = planned[law.id] = choice.scout(law, bases);
        if (own.empty()) own = choice.scout(law, choice.pool);
    }
    // The cheapest law first, then again what is cheapest now.
    for (bool more = true; more;) {
        more = false;
        const std::set<std::string>* cheapest = nullptr;
        std::int64_t left = -1;
        for (const auto& [law, own] : planned) {
            const auto there = [&](const Planned& p) {
                return room(p.shapes) == most - std::ssize(chosen_);
            };
            if (std::any_of(own.begin(), own.end(), there)) continue;
            for (const Planned& p : own)
                if (room(p.shapes) > left) {
                    left = room(p.shapes);
                    cheapest = &p.shapes;
                }
        }
        if (cheapest != nullptr) {
            chosen_.insert(cheapest->begin(), cheapest->end());
            more = true;
        }
    }
    for (auto& [law, own] : planned)
        for (Planned& p : own)
            if (std::includes(chosen_.begin(), chosen_.end(), p.shapes.begin(), p.shapes.end()))
                cases_[law].push_back(std::move(p.tried));
}

std::optional<Case> FewShapes::draw(const DrawSpace& space, std::uint64_t seed, std::int64_t number,
                                    std::int64_t attempt) const {
    const auto of_law = cases_.find(space.property.id);
    if (of_law == cases_.end()) return std::nullopt;
    const std::vector<Case>& own = of_law->second;
    const Case& base = own[static_cast<std::size_t>(number) % own.size()];
    // At last the case as it was planned: the law's further shapes are those it was chosen with.
    if (attempt >= varied_attempts)
        return number < std::ssize(own) ? std::optional(base) : std::nullopt;
    const std::optional<Case> drawn = search::draw(space, seed, number, attempt);
    Case c = base;
    c.values.seed =
        counter_bits(law_seed(seed, space.property.id), static_cast<std::uint64_t>(number),
                     static_cast<std::uint64_t>(attempt)) >>
        40;
    if (!drawn) return c;
    c.values.kind = drawn->values.kind;
    const Problem p = varied(base.problem, drawn->problem, drawn->values.seed);
    if (number % 3 != 0 && !find_contradiction(p) && shape_of(p) == shape_of(base.problem) &&
        in_space(space.property, space.capability, p))
        c.problem = p;
    return c;
}

void FewShapes::visit(const Problem& problem) const {
    const std::lock_guard lock(mutex_);
    visited_.insert(shape_of(problem));
}

void FewShapes::tell(CampaignResult& result) const {
    const std::lock_guard lock(mutex_);
    result.shapes_visited.assign(visited_.begin(), visited_.end());
    result.narrowed.push_back(told_of_shapes(visited_.size(), most_));
}

}  // namespace attest::search
