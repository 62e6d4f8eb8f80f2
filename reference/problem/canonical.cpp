// The one form of a problem: what is written out but changes nothing is folded away, so that equal
// problems compare equal and have one line, one JSON text and one name.

#include <algorithm>

#include <bit>

#include "reference/problem/mask_pattern.hpp"
#include "reference/problem/problem.hpp"

namespace attest {
namespace {

/// Only a vector that fits the batch can be full; another one is a contradiction, and stays one.
void fold_full(std::vector<std::int64_t>& lens, std::int64_t batch, std::int64_t full) {
    const bool fits = static_cast<std::int64_t>(lens.size()) == batch;
    if (fits && std::count(lens.begin(), lens.end(), full) == batch) lens.clear();
}

/// An axis of extent 1 is the same tensor whether it is called shared or not.
MaskTensor folded(MaskTensor mask, const Problem& p) {
    if (mask.kind == MaskKind::none) return {};
    if (!has_tiles(mask.pattern)) mask.tile = MaskTensor{}.tile;
    if (mask.kind == MaskKind::boolean) mask.floor = 0;
    mask.shared_batch = mask.shared_batch && p.batch != 1;
    mask.shared_heads = mask.shared_heads && p.heads_q != 1;
    mask.shared_queries = mask.shared_queries && p.len_q != 1;
    mask.shared_keys = mask.shared_keys && p.len_kv != 1;
    return mask;
}

}  // namespace

Problem canonical(Problem p) {
    if (p.dim_v == p.dim_qk) p.dim_v = 0;
    Problem plain = p;
    plain.scale.reset();
    if (p.scale == effective_scale(plain)) p.scale.reset();
    fold_full(p.mask.lens_q, p.batch, p.len_q);
    fold_full(p.mask.lens_kv, p.batch, p.len_kv);
    p.mask.tensor = folded(p.mask.tensor, p);
    // Of a power of two heads the published slopes are the geometric ones.
    const bool power_of_two = std::has_single_bit(static_cast<std::uint64_t>(p.heads_q));
    if (!p.alibi || (p.alibi_slopes == AlibiSlopes::published && power_of_two))
        p.alibi_slopes = AlibiSlopes::geometric;
    if (p.rope.style == RopeStyle::none) p.rope = {};
    if (p.rope.dims == p.dim_qk) p.rope.dims = 0;
    if (p.dropout.p == 0.0) p.dropout = {};
    if (!p.cache.present) p.cache = {};
    if (!p.want_grad || !p.want_lse) p.lse_grad = false;
    return p;
}

}  // namespace attest
