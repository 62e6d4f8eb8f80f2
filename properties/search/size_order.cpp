#include "properties/search/size_order.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "reference/problem/feature.hpp"
#include "reference/problem/mask_pattern.hpp"

namespace attest::search {

namespace {

std::int64_t sum(const std::vector<std::int64_t>& numbers) {
    std::int64_t total = 0;
    for (const std::int64_t n : numbers) total += n;
    return total;
}

/// Asking for the log-sum-exp is the default, so it is no feature here; not asking is.
std::int64_t feature_weight(const Problem& p) {
    const FeatureSet set = features_of(p).without(Feature::lse);
    return std::popcount(set.bits()) + (p.want_lse ? 0 : 1);
}

/// f32 before the others: the format with the fewest surprises.
std::int64_t format_weight(const Problem& p) {
    std::int64_t weight = 0;
    for (const Precision format : {p.format_q, p.format_kv, p.format_o})
        weight =
            8 * weight + (format == Precision::f32 ? 0 : 1 + static_cast<std::int64_t>(format));
    return weight;
}

/// Distance to the plainest value of each feature's own numbers.
std::int64_t parameter_weight(const Problem& p) {
    const auto layout = [](const Layout& l) {
        return static_cast<std::int64_t>(l.order) + l.row_pad + l.offset;
    };
    const Mask& m = p.mask;
    const MaskTensor& t = m.tensor;
    std::int64_t weight = std::max<std::int64_t>(m.window.left + 1, 0) +
                          std::max<std::int64_t>(m.window.right + 1, 0);
    // Lengths count by what they cut off: the fewer, the plainer.
    if (!m.lens_q.empty()) weight += p.batch * p.len_q - sum(m.lens_q);
    if (!m.lens_kv.empty()) weight += p.batch * p.len_kv - sum(m.lens_kv);
    weight += static_cast<std::int64_t>(m.documents_q.size());
    weight += t.shared_batch + t.shared_heads + t.shared_queries + t.shared_keys;
    weight += 1024 * static_cast<std::int64_t>(t.pattern) + (has_tiles(t.pattern) ? t.tile : 0) +
              (t.floor == 0 ? 0 : 1) + static_cast<std::int64_t>(p.alibi_slopes);
    weight += p.splits + p.cache.page_size + p.cache.ring + p.cache.keys_rotated;
    weight += p.rope.offset + p.rope.dims + (p.rope.base != Rope{}.base ? 1 : 0) +
              (p.rope.style == RopeStyle::half ? 1 : 0);
    weight += layout(p.layout_q) + layout(p.layout_k) + layout(p.layout_v) + layout(p.layout_o);
    weight += p.softcap == 1.0 ? 0 : 1;
    weight += p.scale && std::abs(*p.scale) == 1.0 ? 0 : 1;
    return weight + dropout_weight(p.dropout);
}

Values filled(Fill q, Fill k, Fill v) {
    Values values;
    for (const auto& [role, fill] : {std::pair{Role::q, q}, {Role::k, k}, {Role::v, v}})
        values.tensors[role] = {fill, {}};
    return values;
}

Values from_kind(ValueKind kind, std::uint64_t seed) {
    Values values;
    values.kind = kind;
    values.seed = seed;
    return values;
}

constexpr std::uint64_t ladder_seeds = 4, mask_seeds = 12;

/// dO beside any queries, keys and values: one number, one in eight, all alike, small integers.
/// Beside filled tensors it is one number where nothing is said.
constexpr Fill output_gradients[] = {Fill::one_hot, Fill::sparse, Fill::ones, Fill::index};

/// dLSE beside queries, keys and values of a ladder: zeros, where it is dO that matters; numbers in
/// every row. It is one number where nothing is said.
constexpr Fill lse_gradients[] = {Fill::zeros, Fill::ones, Fill::index};

/// Whether queries, keys and values are.
bool is_drawn(const Values& values) {
    return std::ranges::none_of(values.tensors, [](const auto& t) {
        return t.first != Role::d_o && t.first != Role::d_lse;
    });
}

bool is_simple(ValueKind kind) {
    return kind == ValueKind::small_int || kind == ValueKind::normal;
}

std::vector<Values> make_ladder() {
    using enum Fill;
    std::vector<Values> ladder = {filled(zeros, zeros, ones),  filled(zeros, zeros, zeros),
                                  filled(zeros, zeros, index), filled(ones, ones, ones),
                                  filled(ones, ones, index),   filled(ones, index, ones),
                                  filled(ones, index, index),  filled(ones, alternating, index),
                                  filled(index, index, index), filled(ones, steep, index)};
    const std::vector<Values> fills = ladder;
    for (std::uint64_t seed = 1; seed < mask_seeds; ++seed)
        for (const Fill v : {ones, index}) {
            ladder.push_back(filled(zeros, zeros, v));
            ladder.back().seed = seed;
        }
    const auto with = [&ladder](Values values, Fill given, Role role = Role::d_o) {
        values.tensors[role] = {given, {}};
        ladder.push_back(std::move(values));
    };
    for (const Fill d_o : {sparse, ones, index})
        for (const Values& values : fills) with(values, d_o);
    for (const Fill d_lse : lse_gradients)
        for (const Values& values : fills) with(values, d_lse, Role::d_lse);
    const auto add = [&ladder](ValueKind kind) {
        for (std::uint64_t seed = 0; seed < ladder_seeds; ++seed)
            ladder.push_back(from_kind(kind, seed));
    };
    for (const ValueKind kind : {ValueKind::small_int, ValueKind::normal}) {
        for (const Fill d_o : output_gradients)
            for (std::uint64_t seed = 0; seed < ladder_seeds; ++seed)
                with(from_kind(kind, seed), d_o);
        for (const Fill d_lse : lse_gradients)
            for (std::uint64_t seed = 0; seed < ladder_seeds; ++seed)
                with(from_kind(kind, seed), d_lse, Role::d_lse);
        add(kind);
    }
    // Some defects show in no simple data, and the first that shows them must not depend on the one
    // they were found in: so all the others follow.
    for (int kind = 0; kind < value_kind_count; ++kind)
        if (!is_simple(static_cast<ValueKind>(kind))) add(static_cast<ValueKind>(kind));
    return ladder;
}

Fill fill_of(const Values& values, Role role) {
    const auto found = values.tensors.find(role);
    return found == values.tensors.end() ? Fill::drawn : found->second.fill;
}

/// Whether the seed says more of a case than q, k and v.
bool seed_matters(const Problem& p) {
    return p.mask.tensor.kind != MaskKind::none || p.sink ||
           (p.alibi && p.alibi_slopes == AlibiSlopes::random);
}

bool affordable(const Values& values, const Case& at, Share share) {
    const bool drawn = is_drawn(values),
               near = is_simple(values.kind) || values.kind == at.values.kind;
    if (!drawn && values.seed != 0 && !seed_matters(at.problem)) return false;
    for (const Role role : {Role::d_o, Role::d_lse}) {
        const Fill fill = fill_of(values, role);
        if (fill != Fill::drawn && !shape_of(at.problem, role)) return false;
        // Moves keep what was found to do, or take the simplest.
        if (fill != Fill::drawn && fill != fill_of(at.values, role) && share != Share::whole)
            return false;
    }
    switch (share) {
        case Share::whole:
            return true;
        case Share::moving:
            return !drawn || near || values.seed == 0;
        case Share::sweeping:
            // Of the fills: flat scores with equal or distinct values, and distinct scores.
            if (drawn) return near && values.seed == 0;
            return fill_of(values, Role::v) == Fill::index ||
                   fill_of(values, Role::k) == Fill::zeros;
    }
    return true;
}

}  // namespace

std::int64_t dropout_weight(const Dropout& dropout) {
    if (dropout.p == 0) return 0;
    constexpr std::int64_t seeds_apart = std::int64_t{1} << 61;
    const std::int64_t rate = dropout.p == 0.5 ? 0 : dropout.p == 0.25 ? 1 : 2;
    return rate * seeds_apart +
           static_cast<std::int64_t>(std::min<std::uint64_t>(dropout.seed, seeds_apart - 1));
}

const std::vector<Values>& data_ladder() {
    static const std::vector<Values> ladder = make_ladder();
    return ladder;
}

std::vector<Values> data_ladder(const std::vector<ValueKind>& kinds, const Case& at, Share share) {
    std::vector<Values> rungs;
    for (const Values& values : data_ladder()) {
        const bool admitted =
            kinds.empty() || (values.tensors.empty() &&
                              std::find(kinds.begin(), kinds.end(), values.kind) != kinds.end());
        if (admitted && affordable(values, at, share)) rungs.push_back(values);
    }
    return rungs;
}

std::int64_t data_rank(const Values& values) {
    const auto& ladder = data_ladder();
    const auto found = std::find(ladder.begin(), ladder.end(), values);
    if (found != ladder.end()) return found - ladder.begin();
    // Behind the ladder: written-out numbers by their size, then kinds by seed.
    constexpr std::int64_t explicit_from = 1'000, kinds_from = std::int64_t{1} << 40;
    const bool written =
        std::any_of(values.tensors.begin(), values.tensors.end(),
                    [](const auto& t) { return t.second.fill == Fill::explicit_values; });
    if (written) {
        double total = 0;
        for (const auto& [role, tensor] : values.tensors)
            for (const double x : tensor.values)
                total +=
                    x == std::trunc(x) ? 2 * std::abs(x) + (x < 0 ? 1 : 0) : 1024 + std::abs(x);
        return explicit_from +
               static_cast<std::int64_t>(std::min(total, static_cast<double>(kinds_from / 2)));
    }
    const auto seed = static_cast<std::int64_t>(values.seed >> 4);  // room for the kinds
    const std::int64_t kind =
        is_simple(values.kind) ? 0 : 1 + static_cast<std::int64_t>(values.kind);
    return kinds_from + kind * (std::int64_t{1} << 36) + std::min(seed, std::int64_t{1} << 35);
}

SizeKey size_key(const Case& c) {
    const Problem& p = c.problem;
    SizeKey key;
    key.text = print(c);
    key.numbers = {score_count(p),
                   p.dim_qk + value_dim(p),
                   p.batch,
                   p.heads_q,
                   p.heads_kv,
                   p.len_q,
                   p.len_kv,
                   p.dim_qk,
                   feature_weight(p),
                   format_weight(p),
                   parameter_weight(p),
                   data_rank(c.values),
                   static_cast<std::int64_t>(key.text.size())};
    return key;
}

}  // namespace attest::search
