#include <algorithm>
#include <cmath>

#include "properties/search/derive.hpp"
#include "properties/search/features.hpp"

namespace attest::search {

namespace {

std::int64_t sequences_and_heads(const Problem& p) {
    return p.batch * p.heads_q;
}

/// The number of scores this case aims at: log-uniform from 32 to 4096 where typical; of a kernel
/// that takes whole tiles alone from one of them to eight.
std::int64_t scores_wanted(const Raw& raw, std::int64_t most, std::int64_t least) {
    const double smallest_log2 = std::log2(static_cast<double>(least));
    const double least_log2 = std::max(5.0, smallest_log2),
                 typical_log2 = std::max(12.0, smallest_log2 + 3);
    const auto between = [&](double low, double high) {
        return static_cast<std::int64_t>(std::exp2(low + raw.size_share * (high - low)));
    };
    switch (raw.size) {
        case Size::typical:
            return std::min(most, between(least_log2, typical_log2));
        case Size::large:
            return std::min(most, between(typical_log2, typical_log2 + 2));
        case Size::full:
        case Size::long_keys:
        case Size::long_queries:
            return most;
    }
    return most;
}

/// Where lengths are whole tiles: every number of tiles as often as another.
std::int64_t whole_tiles(std::int64_t len, std::int64_t tile, std::int64_t most) {
    constexpr std::int64_t tile_least = 8;  // of smaller ones the lengths drawn are many
    return tile < tile_least || most < tile ? len : tile * (1 + (len - 1) % (most / tile));
}

void set_lengths(Problem& p, const Raw& raw, const ShapePlan& plan, bool square) {
    const auto cut = [&](std::int64_t len) {
        return std::clamp<std::int64_t>(len, 1, plan.len_max);
    };
    p.len_q = whole_tiles(cut(raw.len_q), plan.tile_q, plan.len_max);
    p.len_kv = whole_tiles(cut(raw.len_kv), plan.tile_kv, plan.len_max);
    if (raw.size == Size::long_keys) p.len_kv = cut(raw.long_len);
    if (raw.size == Size::long_queries) p.len_q = cut(raw.long_len);
    switch (raw.relation) {
        case LengthRelation::free:
            break;
        case LengthRelation::equal:
            p.len_q = p.len_kv;
            break;
        case LengthRelation::one_query:
            p.len_q = 1;
            break;
        case LengthRelation::one_more_query:
            p.len_q = cut(p.len_kv + 1);
            break;
        case LengthRelation::one_more_key:
            p.len_kv = cut(p.len_q + 1);
            break;
    }
    if (plan.len_q_one) p.len_q = 1;
    if (square) p.len_q = p.len_kv = plan.len_q_one ? 1 : p.len_kv;
    if (plan.features.has(Feature::cache) && p.len_q > p.len_kv) std::swap(p.len_q, p.len_kv);
}

/// Of lengths that are listed, each in turn, up to the longest that are drawn.
void spread_lengths(Problem& p, const ShapePlan& plan) {
    using enum kernel::Quantity;
    kernel::spread(p, plan.takes);
    for (const auto& [len, of] : {std::pair{&p.len_q, len_q}, {&p.len_kv, len_kv}})
        if (*len > plan.len_max) *len = plan.takes[of].nearest(plan.len_max);
}

/// One sequence, and no more heads than the features need. A grouped case keeps two key/value heads
/// as long as it can: with one, every mapping of heads is right.
void give_up_heads(Problem& p, bool grouped, const ShapePlan& plan) {
    const auto too_large = [&] { return score_count(p) > plan.scores_max; };
    if (too_large()) p.batch = 1;
    const auto set_heads = [&](std::int64_t heads_kv, std::int64_t group) {
        p.heads_kv = heads_kv;
        p.heads_q = heads_kv * group;
    };
    std::int64_t group = group_size(p);
    if (too_large() && p.heads_kv > 2) set_heads(2, group);
    while (too_large() && group > (grouped ? 2 : 1)) set_heads(p.heads_kv, --group);
    if (too_large()) set_heads(1, group);
    kernel::fit_heads(p, plan.takes);
}

void shorten(Problem& p, std::int64_t& len, std::int64_t other, std::int64_t scores_max) {
    const std::int64_t room =
        scores_max / std::max<std::int64_t>(sequences_and_heads(p) * other, 1);
    len = std::clamp<std::int64_t>(std::min(len, room), 1, len);
}

void give_up_lengths(Problem& p, const Raw& raw, const ShapePlan& plan, bool square,
                     std::int64_t least) {
    if (score_count(p) <= plan.scores_max) return;
    const std::int64_t area = std::max<std::int64_t>(plan.scores_max / sequences_and_heads(p), 1);
    const std::int64_t side =
        std::max<std::int64_t>(static_cast<std::int64_t>(std::sqrt(static_cast<double>(area))), 1);
    if (square || (raw.relation == LengthRelation::equal && !plan.len_q_one)) {
        p.len_q = p.len_kv = std::max(std::min(side, p.len_kv), std::int64_t{1});
        return;
    }
    using enum kernel::Quantity;
    const bool keys_listed = !plan.takes[len_kv].only.empty() && plan.takes[len_q].only.empty();
    const bool queries_first = raw.size == Size::long_keys || (raw.size != Size::long_queries &&
                                                               (raw.queries_first || keys_listed));
    std::int64_t& first = queries_first ? p.len_q : p.len_kv;
    std::int64_t& second = queries_first ? p.len_kv : p.len_q;
    shorten(p, first, std::max(second, least), plan.scores_max);
    shorten(p, second, first, plan.scores_max);
}

/// The largest allowed dimension is `dim` itself or, where the case would cost too much, 8: small,
/// and a vector's width. The kernel may have none so small.
std::int64_t affordable(std::int64_t dim, std::int64_t scores, const ShapePlan& plan) {
    const std::int64_t cheap = std::max<std::int64_t>(8, plan.dim_least);
    return dim * scores <= plan.work_max ? dim : std::min(dim, cheap);
}

}  // namespace

void derive_shape(Problem& p, const Raw& raw, const ShapePlan& plan) {
    using enum Feature;
    const FeatureSet& f = plan.features;
    const bool grouped = f.has(gqa);
    const bool square = plan.square || counts_alike(f, plan.takes);
    p.batch = f.has(documents) ? 1 : raw.batch;
    p.heads_kv = raw.heads_kv;
    p.heads_q = raw.heads_kv * (grouped ? raw.group : 1);
    kernel::spread(p, plan.takes);
    kernel::fit_heads(p, plan.takes);
    set_lengths(p, raw, plan, square);
    spread_lengths(p, plan);
    ShapePlan wanted = plan;
    wanted.scores_max = std::min(scores_wanted(raw, plan.scores_max, plan.scores_least),
                                 plan.work_max / plan.dim_least);
    const bool is_long = raw.size == Size::long_keys || raw.size == Size::long_queries;
    if (raw.heads_first || is_long) give_up_heads(p, grouped, wanted);
    give_up_lengths(p, raw, wanted, square, 1);
    give_up_heads(p, grouped, wanted);
    if (f.has(cache) && p.len_q > p.len_kv) std::swap(p.len_q, p.len_kv);
    if (plan.more_queries && !square && p.len_q <= p.len_kv) {
        std::swap(p.len_q, p.len_kv);
        if (p.len_q == p.len_kv && p.len_kv > 1) --p.len_kv;
        if (p.len_q == p.len_kv) ++p.len_q;
    }
    const kernel::Queries relation = square         ? kernel::Queries::as_keys
                                     : f.has(cache) ? kernel::Queries::at_most_keys
                                                    : kernel::Queries::any;
    const auto fit = [&] {
        kernel::fit_heads(p, plan.found);
        kernel::fit_lengths(p, plan.found,
                            f.has(cache) ? kernel::Queries::at_most_keys : kernel::Queries::any);
        kernel::fit_lengths(p, plan.takes, relation);
    };
    fit();
    if (score_count(p) > plan.scores_max) {  // what is taken is larger than what was wanted
        p.batch = p.heads_kv = p.len_q = p.len_kv = 1;
        p.heads_q = grouped ? 2 : 1;
        kernel::fit_heads(p, plan.takes);
        fit();
    }
    p.dim_qk = affordable(raw.dim_qk, score_count(p), plan);
    if (f.has(rope))
        p.dim_qk = std::max(p.dim_qk, plan.takes[kernel::Quantity::rope_dims].nearest(1));
    p.dim_v = f.has(dim_v) ? affordable(raw.dim_v, score_count(p), plan) : 0;
}

}  // namespace attest::search
