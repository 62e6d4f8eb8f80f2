#include "properties/search/refused_together.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <string_view>

#include "reference/problem/feature.hpp"

namespace attest::search {

namespace {

/// Keys of a sequence beside its queries.
template <typename Has>
bool any_sequence(const Problem& p, Has has) {
    for (std::size_t b = 0; b < static_cast<std::size_t>(p.batch); ++b)
        if (has(p.mask.lens_q.empty() ? p.len_q : p.mask.lens_q[b],
                p.mask.lens_kv.empty() ? p.len_kv : p.mask.lens_kv[b]))
            return true;
    return false;
}

struct Fact {
    std::string_view said;
    bool (*holds)(const Problem&);
};

constexpr std::array<Fact, 17> facts = {{
    {"batch > 1", [](const Problem& p) { return p.batch > 1; }},
    {"one sequence", [](const Problem& p) { return p.batch == 1; }},
    {"several queries", [](const Problem& p) { return p.len_q > 1; }},
    {"one query", [](const Problem& p) { return p.len_q == 1; }},
    {"fewer queries than keys", [](const Problem& p) { return p.len_q < p.len_kv; }},
    {"more queries than keys", [](const Problem& p) { return p.len_q > p.len_kv; }},
    {"as many queries as keys", [](const Problem& p) { return p.len_q == p.len_kv; }},
    {"several key/value heads", [](const Problem& p) { return p.heads_kv > 1; }},
    {"a sequence without queries",
     [](const Problem& p) { return any_sequence(p, [](auto q, auto) { return q == 0; }); }},
    {"a sequence without keys",
     [](const Problem& p) { return any_sequence(p, [](auto, auto kv) { return kv == 0; }); }},
    {"a sequence of fewer keys than queries",
     [](const Problem& p) { return any_sequence(p, [](auto q, auto kv) { return kv < q; }); }},
    {"an empty cache", [](const Problem& p) { return p.cache.present && p.cache.len == 0; }},
    {"a window without an end to the left",
     [](const Problem& p) { return p.mask.window.limited() && p.mask.window.left < 0; }},
    {"a window that ends to the left",
     [](const Problem& p) { return p.mask.window.limited() && p.mask.window.left >= 0; }},
    {"a window that reaches to the right",
     [](const Problem& p) { return p.mask.window.limited() && p.mask.window.right != 0; }},
    {"an odd head dimension", [](const Problem& p) { return p.dim_qk % 2 != 0; }},
    {"unequal formats of q and k", [](const Problem& p) { return p.format_q != p.format_kv; }},
}};

/// No kernel asks for a scale below 0, for the gradient of a log-sum-exp or for dropout: what lacks
/// them is no trait.
constexpr bool may_be_lacking(Feature feature) {
    return feature != Feature::negative_scale && feature != Feature::d_lse &&
           feature != Feature::dropout;
}

/// The features that a problem may lack, in order: bit feature_count + n stands for the n-th.
constexpr auto lackable = [] {
    std::array<Feature, feature_count - 3> list{};
    std::size_t n = 0;
    for (int f = 0; f < feature_count; ++f)
        if (may_be_lacking(static_cast<Feature>(f))) list[n++] = static_cast<Feature>(f);
    return list;
}();

constexpr int first_fact = feature_count + static_cast<int>(lackable.size());
constexpr int trait_count = first_fact + static_cast<int>(facts.size());
static_assert(trait_count <= 64);

constexpr Traits bit(int trait) {
    return Traits{1} << trait;
}

/// How many refusals are more than chance: of `count` sets, one of `refused_share` each time.
std::int64_t enough(double count, double refused_share) {
    constexpr double chance = 0.01;  // of finding any at all by luck: see the header
    return static_cast<std::int64_t>(
        std::ceil(std::log(count / chance) / -std::log(refused_share)));
}

struct TraitsSeen {
    Traits traits = 0;
    std::int64_t times = 0;
};

/// Fewer refusals; of as many, by what is not there.
bool explains_less(const TraitsSeen& a, const TraitsSeen& b) {
    constexpr Traits absent = ((Traits{1} << lackable.size()) - 1) << feature_count;
    const auto lacks = [](Traits traits) { return std::popcount(traits & absent); };
    if (a.times != b.times) return a.times < b.times;
    if (lacks(a.traits) != lacks(b.traits)) return lacks(a.traits) > lacks(b.traits);
    return a.traits > b.traits;
}

std::int64_t times_of(Traits set, const std::vector<Traits>& problems) {
    return std::count_if(problems.begin(), problems.end(),
                         [set](Traits traits) { return (traits & set) == set; });
}

/// Every set of so many of these traits.
template <typename Visit>
void each_set(Traits of, int size, Traits chosen, const Visit& visit) {
    if (size == 0) return visit(chosen);
    for (Traits left = of; left != 0; left &= left - 1)
        each_set(left & (left - 1), size - 1, chosen | (left & -left), visit);
}

std::vector<TraitsSeen> counted(const std::vector<Traits>& problems, int size) {
    std::vector<Traits> sets;
    for (const Traits traits : problems)
        each_set(traits, size, 0, [&](Traits set) { sets.push_back(set); });
    std::sort(sets.begin(), sets.end());
    std::vector<TraitsSeen> all;
    for (const Traits set : sets) {
        if (all.empty() || all.back().traits != set) all.push_back({set, 0});
        ++all.back().times;
    }
    return all;
}

}  // namespace

Traits traits_of(const Problem& problem) {
    const FeatureSet features = features_of(problem);
    Traits traits = features.bits();
    for (std::size_t n = 0; n < lackable.size(); ++n)
        if (!features.has(lackable[n])) traits |= bit(feature_count + static_cast<int>(n));
    for (std::size_t n = 0; n < facts.size(); ++n)
        if (facts[n].holds(problem)) traits |= bit(first_fact + static_cast<int>(n));
    return traits;
}

std::string said(Traits traits) {
    std::string with, without;
    for (int n = 0; n < trait_count; ++n) {
        if ((traits & bit(n)) == 0) continue;
        const bool lacks = n >= feature_count && n < first_fact;
        const auto at = static_cast<std::size_t>(n - (lacks ? feature_count : first_fact));
        std::string& text = lacks ? without : with;
        if (!text.empty()) text += lacks ? " or " : " with ";
        text += lacks               ? name(lackable[at])
                : n < feature_count ? name(static_cast<Feature>(n))
                                    : facts[at].said;
    }
    if (without.empty()) return with;
    return (with.empty() ? "everything" : with) + " without " + without;
}

std::vector<Traits> refused_together(const std::vector<Traits>& accepted,
                                     std::vector<Traits> refused) {
    std::vector<Traits> learned;
    if (accepted.empty() || refused.empty()) return learned;
    const auto count = static_cast<double>(accepted.size() + refused.size());
    const double share = static_cast<double>(refused.size()) / count;
    double sets = 1;
    for (int size = 1; size <= 3; ++size) {
        sets *= static_cast<double>(trait_count - size + 1) / size;
        std::vector<TraitsSeen> seen = counted(refused, size);
        std::erase_if(seen, [&](const TraitsSeen& set) {
            return set.times < enough(sets, share) || times_of(set.traits, accepted) > 0;
        });
        while (!seen.empty()) {
            const TraitsSeen best = *std::max_element(seen.begin(), seen.end(), explains_less);
            learned.push_back(best.traits);
            std::erase_if(refused, [&](Traits of) { return (of & best.traits) == best.traits; });
            for (TraitsSeen& set : seen) set.times = times_of(set.traits, refused);
            std::erase_if(seen,
                          [&](const TraitsSeen& set) { return set.times < enough(sets, share); });
        }
    }
    return learned;
}

}  // namespace attest::search
