#include "kernels/interface/takes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kernels/interface/manifest_words.hpp"
#include "reference/problem/names.hpp"

namespace attest::kernel {
namespace {

std::string in_words(const NumberSet& numbers) {
    if (numbers.most == numbers.multiple) return fmt::format("{} alone", *numbers.most);
    std::string text = fmt::format("{}", fmt::join(numbers.only, ", "));
    const auto add = [&](const std::string& more) {
        text.append(text.empty() ? "" : ", ").append(more);
    };
    if (numbers.multiple > 1) add(fmt::format("multiples of {}", numbers.multiple));
    if (numbers.least) add(fmt::format("from {}", *numbers.least));
    if (numbers.most) add(fmt::format("up to {}", *numbers.most));
    return text;
}

struct Limit {
    std::string sentence;  ///< for people
    std::function<bool(const Problem&)> has;
    bool usual = false;  ///< what no manifest need say
};

/// Points into `takes`.
std::vector<Limit> limits_of(const NumberLimits& takes) {
    std::vector<Limit> limits;
    for (const QuantityRow& row : quantities()) {
        const NumberSet& numbers = takes[row.quantity];
        if (numbers.any()) continue;
        limits.push_back({fmt::format("{}: {}", row.said, in_words(numbers)),
                          [&row, &numbers](const Problem& problem) {
                              bool has = true;
                              Problem p = problem;
                              row.each(p, [&](std::int64_t n) {
                                  has = has && numbers.has(n);
                                  return n;
                              });
                              return has;
                          }});
    }
    if (takes.queries == Queries::as_keys)
        limits.push_back(
            {"queries: as many as keys", [](const Problem& p) { return p.len_q == p.len_kv; }});
    if (takes.queries == Queries::at_most_keys)
        limits.push_back(
            {"queries: no more than keys", [](const Problem& p) { return p.len_q <= p.len_kv; }});
    return limits;
}

template <typename Listed>
std::string list_of(const std::vector<Listed>& list, std::span<const std::string_view> names) {
    std::vector<std::string_view> words;
    for (const Listed one : list) words.push_back(names[static_cast<std::size_t>(one)]);
    return fmt::format("{}", fmt::join(words, ", "));
}

void limit_words(std::vector<Limit>& limits, const Takes& takes) {
    if (!takes.rope.empty())
        limits.push_back(
            {"rope: " + list_of(takes.rope, rope_style_names()), [&takes](const Problem& p) {
                 return p.rope.style == RopeStyle::none || among(takes.rope, p.rope.style);
             }});
    if (takes.turns_all)
        limits.push_back({"rope: turns every channel", [](const Problem& p) {
                              return p.rope.dims == 0 || p.rope.dims == p.dim_qk;
                          }});
    if (!takes.orders.empty())
        limits.push_back({"order of axes: " + list_of(takes.orders, axis_order_names()),
                          [&takes](const Problem& p) {
                              const auto order = common_order(p);
                              return order && among(takes.orders, *order);
                          }});
    if (takes.lse_order == LseOrder::bht)  // of every problem
        limits.push_back({"order of axes of the log-sum-exp: bht, without gaps",
                          [](const Problem&) { return true; }});
    if (takes.always == FeatureSet{}) return;
    std::string always;
    for (int f = 0; f < feature_count; ++f) {
        const auto feature = static_cast<Feature>(f);
        if (!takes.always.has(feature)) continue;
        always.append(always.empty() ? "" : ", ").append(name(feature));
        // Lengths that are all the axis's own are none.
        if (feature == Feature::lens_q || feature == Feature::lens_kv)
            always += " (shorter than the axis for some sequence)";
    }
    limits.push_back({"nothing without " + always, [&takes](const Problem& p) {
                          return features_of(p).contains(takes.always);
                      }});
}

bool may_ask_lse(LseAsked when, const Problem& p) {
    if (when == LseAsked::with_cache) return p.cache.present;
    return when != LseAsked::without_cache || !p.cache.present;
}

bool must_ask_lse(LseAsked when, const Problem& p) {
    return when == LseAsked::always || (when == LseAsked::always_with_cache && p.cache.present);
}

Limit limit_of_masks(const Takes& takes) {
    using manifest_words::mask_axis_words;
    std::string axes;
    for (const auto& axis : mask_axis_words)
        if (takes_shared(takes, axis.value))
            axes.append(axes.empty() ? "" : ", ").append(axis.word);
    const auto taken = [&takes](MaskShared axis) { return takes_shared(takes, axis); };
    return {.sentence = "mask of extent 1 along: " + (axes.empty() ? "no axis" : axes),
            .has =
                [taken](const Problem& p) {
                    return std::ranges::all_of(mask_axis_words, [&](const auto& axis) {
                        return !(p.mask.tensor.*axis.value) || taken(axis.value);
                    });
                },
            .usual = std::ranges::all_of(Takes{}.mask_shared, taken)};
}

std::vector<Limit> limits_of(const Takes& takes) {
    std::vector<Limit> limits = limits_of(static_cast<const NumberLimits&>(takes));
    if (takes.padding == Padding::right)
        limits.push_back(
            {"lengths: as many queries as keys, where there is no cache", padded_right});
    if (takes.lse != LseAsked::any) {
        constexpr const char* said[] = {"any", "always asked for", "always asked for with a cache",
                                        "asked for with a cache alone",
                                        "asked for without a cache alone"};
        limits.push_back({fmt::format("log-sum-exp: {}", said[static_cast<int>(takes.lse)]),
                          [when = takes.lse](const Problem& p) {
                              return p.want_lse ? may_ask_lse(when, p) : !must_ask_lse(when, p);
                          }});
    }
    if (!takes.dims.empty()) {
        std::vector<std::string> pairs;
        for (const DimPair& pair : takes.dims)
            pairs.push_back(fmt::format("{} with {}", pair.qk, pair.v));
        limits.push_back(
            {fmt::format("head dimension: {}", fmt::join(pairs, ", ")), [&takes](const Problem& p) {
                 return among(takes.dims, {p.dim_qk, value_dim(p)});
             }});
    }
    limit_words(limits, takes);
    limits.push_back(limit_of_masks(takes));
    return limits;
}

std::optional<std::string> refused_by(const std::vector<Limit>& limits, const Problem& problem) {
    for (const Limit& limit : limits)
        if (!limit.has(problem)) return "it takes " + limit.sentence;
    return std::nullopt;
}

std::vector<std::string> sentences_of(const std::vector<Limit>& limits) {
    std::vector<std::string> sentences;
    for (const Limit& limit : limits)
        if (!limit.usual) sentences.push_back(limit.sentence);
    return sentences;
}

}  // namespace

std::optional<AxisOrder> common_order(const Problem& p) {
    const Layout all{.order = p.layout_q.order};
    if (p.layout_q == all && p.layout_k == all && p.layout_v == all && p.layout_o == all)
        return all.order;
    return std::nullopt;
}

bool padded_right(const Problem& p) {
    return p.cache.present ||
           (p.mask.lens_q == p.mask.lens_kv && (p.mask.lens_q.empty() || p.len_q == p.len_kv));
}

bool NumberSet::has(std::int64_t n) const noexcept {
    if (!only.empty()) return among(only, n);
    return n % multiple == 0 && !(least && n < *least) && !(most && n > *most);
}

bool takes_shared(const Takes& takes, MaskShared axis) noexcept {
    return std::ranges::find(takes.mask_shared, axis) != takes.mask_shared.end();
}

FeatureSet inherent_features(const Takes& takes) {
    FeatureSet set;
    if (!takes[Quantity::group].has(1)) set = set.with(Feature::gqa);
    if (!takes.orders.empty()) set = set.with(Feature::layout);
    if (!takes.dims.empty() || !takes[Quantity::dim_v].any()) set = set.with(Feature::dim_v);
    return set;
}

FeatureSet inherent_features(const Takes& takes, const Problem& p) {
    FeatureSet set = inherent_features(takes);
    const auto order = common_order(p);
    if (!order || !among(takes.orders, *order)) set = set.without(Feature::layout);
    const bool is_pair = !takes.dims.empty() && among(takes.dims, {p.dim_qk, value_dim(p)});
    if (!is_pair && takes[Quantity::dim_v].has(p.dim_qk)) set = set.without(Feature::dim_v);
    return set;
}

std::optional<std::string> refusal(const Takes& takes, const Problem& problem) {
    return refused_by(limits_of(takes), problem);
}

std::optional<std::string> refusal(const NumberLimits& limits, const Problem& problem) {
    return refused_by(limits_of(limits), problem);
}

void fit_lse(Problem& problem, LseAsked when) {
    problem.want_lse =
        must_ask_lse(when, problem) || (problem.want_lse && may_ask_lse(when, problem));
}

std::vector<std::string> described(const Takes& takes) {
    return sentences_of(limits_of(takes));
}

std::vector<std::string> described(const NumberLimits& limits) {
    return sentences_of(limits_of(limits));
}

}  // namespace attest::kernel
