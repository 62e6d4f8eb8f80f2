#include "kernels/cuda/read_params.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace attest::cuda {
namespace {

constexpr std::int64_t dim_max = 256;

const char* refusal(const CudaOffer& offer, const attest_problem& p) {
    if (p.format_q != p.format_kv || p.format_q != p.format_o)
        return "q, k, v and o share one format";
    if (p.format_q == ATTEST_F64) return "f64 is not a GPU format here";
    if (p.format_q == ATTEST_F32 && !offer.f32) return "tensor cores take f16 and bf16";
    if (p.dim_qk > dim_max || p.dim_v > dim_max) return "head dimensions up to 256";
    if (p.dropout_p != 0) return "no dropout";
    if (p.want_grad != 0 && !offer.backward) return "no backward";
    if (p.want_grad != 0 && (p.page_size != 0 || p.cache_len != 0)) return "no backward of a cache";
    if ((p.flags & ATTEST_FLAG_PACKED) != 0) return "no packed sequences";
    if ((p.flags & ATTEST_FLAG_RING) != 0) return "no ring-buffer cache";
    if ((p.flags & ATTEST_FLAG_KEYS_ROTATED) != 0) return "keys are rotated here, not before";
    if ((p.page_size != 0 || p.cache_len != 0) && !offer.cache)
        return "behind a cache queries are aligned to the last key";
    if (p.rope_kind != ATTEST_ROPE_NONE && !offer.rope) return "no rotary positions";
    if (p.splits != 0 && !offer.splits) return "keys are not split";
    if (offer.splits && p.batch * p.len_q > 65535) return "batch times queries is at most 65535";
    return nullptr;
}

Strided strided(const DLTensor* t) {
    Strided s;
    if (t == nullptr) return s;
    s.data = static_cast<char*>(t->data) + t->byte_offset;
    for (int axis = 0; axis < t->ndim && axis < 4; ++axis)
        s.stride[axis] = t->shape[axis] == 1 ? 0 : t->strides[axis];
    return s;
}

/// cp.async moves 16 bytes: every row's first element must lie on 16, and channels must be
/// neighbours.
bool chunks_aligned(const Strided& s) {
    const bool base = reinterpret_cast<std::uintptr_t>(s.data) % 16 == 0;
    return base && s.stride[3] <= 1 && s.stride[0] % 8 == 0 && s.stride[1] % 8 == 0 &&
           s.stride[2] % 8 == 0;
}

template <typename T>
const T* pointer(const DLTensor* t) {
    return t == nullptr ? nullptr
                        : reinterpret_cast<const T*>(static_cast<char*>(t->data) + t->byte_offset);
}

}  // namespace

int answer(const CudaOffer& offer, const attest_problem* problem, char* reason,
           std::size_t reason_cap) {
    const char* why = refusal(offer, *problem);
    if (why == nullptr) return 1;
    std::snprintf(reason, reason_cap, "%s", why);
    return 0;
}

bool read_params(const attest_call* call, Params& p, ElementFormat& element) {
    const attest_problem& a = *call->problem;
    // A caller that knows fewer fields has none of the later ones.
    std::memcpy(static_cast<attest_problem*>(&p), &a, std::min(a.struct_size, sizeof a));
    const auto tensor = [call](int role) { return call->tensor[role]; };
    for (const int role : {ATTEST_ROLE_Q, ATTEST_ROLE_K, ATTEST_ROLE_V, ATTEST_ROLE_O})
        if (tensor(role) == nullptr) return false;
    p.q = strided(tensor(ATTEST_ROLE_Q));
    p.k = strided(tensor(ATTEST_ROLE_K));
    p.v = strided(tensor(ATTEST_ROLE_V));
    p.o = strided(tensor(ATTEST_ROLE_O));
    p.lse = strided(tensor(ATTEST_ROLE_LSE));
    p.mask = strided(tensor(ATTEST_ROLE_MASK));
    p.d_o = strided(tensor(ATTEST_ROLE_D_O));
    p.d_q = strided(tensor(ATTEST_ROLE_D_Q));
    p.d_k = strided(tensor(ATTEST_ROLE_D_K));
    p.d_v = strided(tensor(ATTEST_ROLE_D_V));
    p.d_lse = strided(tensor(ATTEST_ROLE_D_LSE));
    p.d_mask = strided(tensor(ATTEST_ROLE_D_MASK));
    p.d_sinks = strided(tensor(ATTEST_ROLE_D_SINKS));
    p.d_slopes = strided(tensor(ATTEST_ROLE_D_SLOPES));
    if (const DLTensor* d_mask = tensor(ATTEST_ROLE_D_MASK))
        std::copy_n(d_mask->shape, 4, p.mask_extents.axis);
    p.lens_q = pointer<std::int32_t>(tensor(ATTEST_ROLE_LENS_Q));
    p.lens_kv = pointer<std::int32_t>(tensor(ATTEST_ROLE_LENS_KV));
    p.alibi_slopes = a.alibi != 0 ? pointer<float>(tensor(ATTEST_ROLE_ALIBI_SLOPES)) : nullptr;
    p.sinks = a.sink != 0 ? pointer<float>(tensor(ATTEST_ROLE_SINKS)) : nullptr;
    if (a.page_size != 0) {
        const DLTensor* table = tensor(ATTEST_ROLE_BLOCK_TABLE);
        if (table == nullptr) return false;
        p.block_table = pointer<std::int32_t>(table);
        p.block_table_stride = table->strides[0];
    }
    p.scale_f32 = static_cast<float>(a.scale);
    p.softcap_f32 = static_cast<float>(a.softcap);
    p.chunks_aligned = chunks_aligned(p.q) && chunks_aligned(p.k) && chunks_aligned(p.v);
    p.rope_dims = a.rope_kind == ATTEST_ROPE_NONE ? 0 : a.rope_dims != 0 ? a.rope_dims : a.dim_qk;
    element = a.format_q == ATTEST_F32   ? ElementFormat::f32
              : a.format_q == ATTEST_F16 ? ElementFormat::f16
                                         : ElementFormat::bf16;
    return true;
}

std::size_t d_query_sum_bytes(const attest_problem& p) {
    if (p.want_grad == 0) return 0;
    return static_cast<std::size_t>(4 * p.batch * p.heads_q * p.len_q * p.dim_qk);
}

std::int64_t chosen_splits(const attest_problem& problem) {
    constexpr std::int64_t keys_a_split = 256;
    if (problem.splits > 0) return std::min(problem.splits, std::int64_t{64});
    return std::clamp((problem.len_kv + keys_a_split - 1) / keys_a_split, std::int64_t{1},
                      std::int64_t{16});
}

std::size_t decode_workspace_bytes(const attest_problem& problem) {
    const std::int64_t rows = problem.batch * problem.heads_q * problem.len_q;
    return static_cast<std::size_t>(rows * (4 * chosen_splits(problem) * (problem.dim_v + 2) + 4));
}

void place_workspace(const attest_call* call, Params& p) {
    p.splits = chosen_splits(*call->problem);
    const std::int64_t rows = p.batch * p.heads_q * p.len_q;
    p.arrivals = static_cast<std::uint32_t*>(call->workspace);
    p.partial = reinterpret_cast<float*>(p.arrivals + rows);
}

}  // namespace attest::cuda
