#include "properties/diagnosis/scope.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>

#include "properties/diagnosis/condition.hpp"
#include "reference/problem/feature.hpp"

namespace attest::diagnosis {

namespace {

struct ScopeAxis {
    const char *id, *symbol;
};
constexpr ScopeAxis axes[] = {{"len_q", "Tq"},     {"len_kv", "Tk"},    {"dim_qk", "D"},
                              {"dim_v", "Dv"},     {"batch", "B"},      {"heads_q", "Hq"},
                              {"heads_kv", "Hkv"}, {"splits", "splits"}};

/// One or two wrong calls have most things in common.
constexpr std::size_t wrong_min = 3;

/// One of so many relations that are none is stated.
constexpr double by_chance = 1.0 / 100;

// log(C(wrong + right, wrong)): into so many pairs of lists the problems may be parted.
double log_partings(std::size_t wrong, std::size_t right) {
    const auto all = static_cast<double>(wrong + right);
    return std::lgamma(all + 1) - std::lgamma(static_cast<double>(wrong) + 1) -
           std::lgamma(static_cast<double>(right) + 1);
}

}  // namespace

bool beyond_chance(double tried, std::size_t wrong, std::size_t right) {
    return std::log(tried / by_chance) <= log_partings(wrong, right);
}

namespace {

bool of_one_size(const Problem& a, const Problem& b) {
    return std::ranges::all_of(axes, [&](const ScopeAxis& axis) {
        return quantity_of(a, axis.id) == quantity_of(b, axis.id);
    });
}

// Neighbours that differ in nothing else: what was tried on both sides of a limit.
bool differ_in_one_step(const Problem& a, const Problem& b, const std::string& axis) {
    if (std::abs(quantity_of(a, axis) - quantity_of(b, axis)) != 1) return false;
    return std::ranges::all_of(axes, [&](const ScopeAxis& other) {
        return other.id == axis || quantity_of(a, other.id) == quantity_of(b, other.id);
    });
}

std::optional<Scope> limit_between(const ScopeAxis& axis, const std::vector<Problem>& wrong,
                                   const std::vector<Problem>& refuting, bool likely) {
    const auto of = [&axis](const Problem& p) { return quantity_of(p, axis.id); };
    const auto [least, most] = std::ranges::minmax(wrong, {}, of);
    const auto [least_right, most_right] = std::ranges::minmax(refuting, {}, of);
    const bool above = of(least) == of(most_right) + 1, below = of(most) + 1 == of(least_right);
    if (!above && !below) return std::nullopt;
    const bool tried = std::ranges::any_of(wrong, [&](const Problem& w) {
        return std::ranges::any_of(
            refuting, [&](const Problem& r) { return differ_in_one_step(w, r, axis.id); });
    });
    if (!tried && !likely) return std::nullopt;
    const std::string id = axis.id;
    const auto is = [&](const char* relation, std::int64_t n, auto holds) {
        return Scope{fmt::format("when {} {} {}", axis.symbol, relation, n),
                     [=](const Problem& p) { return holds(quantity_of(p, id), n); }};
    };
    if (below && of(most) == of(least)) return is("=", of(most), std::equal_to<std::int64_t>{});
    return above ? is(">", of(most_right), std::greater<std::int64_t>{})
                 : is("≤", of(most), std::less_equal<std::int64_t>{});
}

bool differ_in_format_alone(const Problem& a, const Problem& b) {
    return features_of(a) == features_of(b) && of_one_size(a, b);
}

// A kernel is compiled anew for each format: what other formats alone refute needs no statistics
// where a call was tried in both.
std::optional<Scope> one_format(const std::vector<Problem>& wrong,
                                const std::vector<Problem>& refuting) {
    const Precision format = wrong.front().format_q;
    const auto of_it = [format](const Problem& p) { return p.format_q == format; };
    const auto shown = [&](const Problem& w) {
        return std::ranges::any_of(refuting,
                                   [&](const Problem& r) { return differ_in_format_alone(w, r); });
    };
    if (!std::ranges::all_of(wrong, of_it) || std::ranges::any_of(refuting, of_it) ||
        !std::ranges::any_of(wrong, shown))
        return std::nullopt;
    return Scope{"in " + std::string(name(format)), of_it};
}

bool differ_in_one(FeatureSet a, FeatureSet b) {
    int different = 0;
    for (int n = 0; n < feature_count; ++n)
        different += a.has(static_cast<Feature>(n)) != b.has(static_cast<Feature>(n));
    return different == 1;
}

// Right calls that differ from a wrong one in one feature and in nothing else that is counted.
std::vector<Problem> one_feature_apart(const std::vector<Problem>& wrong,
                                       const std::vector<Problem>& refuting) {
    std::vector<FeatureSet> of_wrong;
    std::ranges::transform(wrong, std::back_inserter(of_wrong), features_of);
    std::vector<Problem> apart;
    for (const Problem& r : refuting) {
        const FeatureSet own = features_of(r);
        for (std::size_t n = 0; n < wrong.size(); ++n)
            if (differ_in_one(of_wrong[n], own) && of_one_size(wrong[n], r)) {
                apart.push_back(r);
                break;
            }
    }
    return apart;
}

// Nor does what such a pair shows; and in the calls that have the feature there may be a limit.
std::optional<Scope> one_feature(const std::vector<Problem>& wrong,
                                 const std::vector<Problem>& refuting) {
    const std::vector<Problem> apart = one_feature_apart(wrong, refuting);
    if (apart.empty()) return std::nullopt;
    for (const Condition& condition : conditions()) {
        if (condition.of_values) continue;
        const auto holds = [condition](const Problem& p) { return condition.holds({p, {}}); };
        if (!std::ranges::all_of(wrong, holds) || std::ranges::all_of(apart, holds)) continue;
        std::vector<Problem> among;
        std::ranges::copy_if(refuting, std::back_inserter(among), holds);
        if (among.empty()) return Scope{condition.says, holds};
        for (const ScopeAxis& axis : axes)
            if (auto limit = limit_between(axis, wrong, among, false))
                return Scope{condition.says + ", " + limit->says,
                             [holds, in_it = limit->holds](const Problem& p) {
                                 return holds(p) && in_it(p);
                             }};
    }
    return std::nullopt;
}

}  // namespace

std::optional<Scope> scope_of(const std::vector<Problem>& wrong,
                              const std::vector<Problem>& refuting) {
    if (wrong.size() < wrong_min || refuting.empty()) return std::nullopt;
    if (auto format = one_format(wrong, refuting)) return format;
    if (auto feature = one_feature(wrong, refuting)) return feature;
    double tried = 0;
    const auto likely = [&] { return beyond_chance(++tried, wrong.size(), refuting.size()); };
    for (const ScopeAxis& axis : axes)
        if (auto limit = limit_between(axis, wrong, refuting, likely())) return limit;
    for (const Condition& condition : conditions()) {
        if (condition.of_values) continue;
        const auto holds = [condition](const Problem& p) { return condition.holds({p, {}}); };
        if (!likely()) return std::nullopt;
        if (std::ranges::all_of(wrong, holds) && std::ranges::none_of(refuting, holds))
            return Scope{condition.says, holds};
    }
    return std::nullopt;
}

}  // namespace attest::diagnosis
