// Moves a problem to one that is taken.
#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "kernels/interface/manifest_words.hpp"
#include "kernels/interface/takes.hpp"

namespace attest::kernel {
namespace {

/// The largest number up to n that both have; where there is none, the smallest; 0: they have none
/// in common.
std::int64_t in_common(const NumberSet& a, const NumberSet& b, std::int64_t n) {
    std::vector<std::int64_t> candidates = a.only.empty() ? b.only : a.only;
    if (candidates.empty()) {
        const std::int64_t step = std::lcm(a.multiple, b.multiple);
        const auto whole = [step](std::int64_t number) { return number - number % step; };
        const std::int64_t least = std::max({a.least.value_or(1), b.least.value_or(1), {1}});
        candidates = {whole(least + step - 1), whole(n), whole(std::min(n, a.most.value_or(n))),
                      whole(std::min(n, b.most.value_or(n)))};
    }
    std::int64_t best = 0;
    for (const std::int64_t candidate : candidates) {
        if (candidate < 1 || !a.has(candidate) || !b.has(candidate)) continue;
        const bool nearer =
            best == 0 || (best > n ? candidate < best : candidate <= n && candidate > best);
        if (nearer) best = candidate;
    }
    return best;
}

void set_order(Problem& p, AxisOrder order) {
    p.layout_q = p.layout_k = p.layout_v = p.layout_o = {.order = order};
}

void pad_right(Problem& p) {
    auto& mask = p.mask;
    mask.lens_q = mask.lens_kv = mask.lens_kv.empty() ? mask.lens_q : mask.lens_kv;
    for (std::int64_t& len : mask.lens_q) len = std::min({len, p.len_q, p.len_kv});
    mask.lens_kv = mask.lens_q;
}

void fit_dims(Problem& p, const std::vector<DimPair>& dims) {
    const auto distance = [&](const DimPair& pair) {
        // A dimension of q above the wanted one is dearer than any of v.
        return std::pair(std::abs(pair.qk - p.dim_qk), std::abs(pair.v - value_dim(p)));
    };
    const auto nearest = std::min_element(
        dims.begin(), dims.end(),
        [&](const DimPair& a, const DimPair& b) { return distance(a) < distance(b); });
    if (distance(*nearest) == std::pair<std::int64_t, std::int64_t>{}) return;
    p.dim_qk = nearest->qk;
    p.dim_v = nearest->v;
}

/// A number of queries that is taken may be another than the cache was cut for.
void fit_cache(Problem& p, const Takes& takes) {
    if (!p.cache.present || p.cache.len + p.len_q == p.len_kv) return;
    if (p.len_q > p.len_kv) fit_lengths(p, takes, Queries::at_most_keys);
    p.cache.len = p.len_kv - p.len_q;
}

}  // namespace

std::int64_t NumberSet::nearest(std::int64_t n) const noexcept {
    if (!only.empty()) {
        std::int64_t best = *std::min_element(only.begin(), only.end());
        for (const std::int64_t member : only)
            if (member <= n) best = std::max(best, member);
        return best;
    }
    const std::int64_t from = std::max<std::int64_t>(least.value_or(1), 1);
    const std::int64_t smallest = (from + multiple - 1) / multiple * multiple;
    n = most ? std::min(n, *most) : n;
    return std::max(n - n % multiple, smallest);
}

void spread(Problem& p, const NumberLimits& takes) {
    using enum Quantity;
    // Those that no other number of the problem limits.
    for (const Quantity q : {batch, heads_kv, group, len_q, len_kv, page_size, window_left,
                             window_right, rope_offset, splits}) {
        const NumberSet& numbers = takes[q];
        if (numbers.only.empty()) continue;
        quantities()[static_cast<std::size_t>(q)].each(p, [&](std::int64_t n) {
            if (n < 1 || numbers.has(n)) return n;
            // What there is stays: of page sizes, 0 is a cache without any.
            std::vector<std::int64_t> some = numbers.only;
            std::erase_if(some, [](std::int64_t member) { return member < 1; });
            if (some.empty()) some = numbers.only;
            return some[static_cast<std::size_t>(n) % some.size()];
        });
    }
}

void fit_heads(Problem& p, const NumberLimits& takes) {
    for (const Quantity q : {Quantity::batch, Quantity::heads_kv, Quantity::group})
        quantities()[static_cast<std::size_t>(q)].each(
            p, [&](std::int64_t n) { return takes[q].nearest(n); });
}

void fit_lengths(Problem& p, const NumberLimits& takes, Queries wanted) {
    const NumberSet &queries = takes[Quantity::len_q], &keys = takes[Quantity::len_kv];
    p.len_q = queries.nearest(p.len_q);
    p.len_kv = keys.nearest(p.len_kv);
    const Queries relation = std::max(takes.queries, wanted);
    if (relation == Queries::as_keys) {
        if (const std::int64_t n = in_common(queries, keys, p.len_kv); n > 0)
            p.len_q = p.len_kv = n;
    } else if (relation == Queries::at_most_keys && p.len_q > p.len_kv) {
        p.len_q = queries.nearest(p.len_kv);
        p.len_kv = std::max(p.len_kv, keys.nearest(p.len_q + keys.multiple - 1));
    }
}

void fit(Problem& p, const Takes& takes) {
    Window& window = p.mask.window;
    if (window.limited() && window.left < 0 && !takes[Quantity::window_right].has(window.right))
        std::swap(window.left, window.right);
    if (window.limited() && window.right < 0 && !takes[Quantity::window_left].has(window.left))
        std::swap(window.left, window.right);
    for (const QuantityRow& row : quantities())
        row.each(p, [&](std::int64_t n) {
            return takes[row.quantity].has(n) ? n : takes[row.quantity].nearest(n);
        });
    fit_cache(p, takes);
    if (!takes.dims.empty()) fit_dims(p, takes.dims);
    const bool has_both = !p.mask.lens_q.empty() && !p.mask.lens_kv.empty();
    const bool counts_alike =
        takes.padding == Padding::right || (has_both && positions_are_indices(p));
    if (counts_alike && !padded_right(p)) pad_right(p);
    for (const auto& axis : manifest_words::mask_axis_words)
        if (!takes_shared(takes, axis.value)) p.mask.tensor.*axis.value = false;
    if (p.rope.style != RopeStyle::none && !among(takes.rope, p.rope.style))
        p.rope.style = takes.rope.front();
    fit_lse(p, takes.lse);
    if (takes.turns_all && p.rope.dims != p.dim_qk) p.rope.dims = 0;
    const auto order = common_order(p);
    if (!takes.orders.empty() && !(order && among(takes.orders, *order)))
        set_order(p,
                  takes.orders[static_cast<std::size_t>(p.layout_q.order) % takes.orders.size()]);
}

}  // namespace attest::kernel
