#include "kernels/worker/wire_problem.hpp"

namespace attest {
namespace {

static_assert(static_cast<int>(Role::block_table) == ATTEST_ROLE_BLOCK_TABLE);
static_assert(static_cast<int>(Role::dropout_keep) == ATTEST_ROLE_DROPOUT_KEEP);
static_assert(role_count == ATTEST_ROLE_COUNT);
static_assert(static_cast<int>(Precision::f64) == ATTEST_F64);
static_assert(static_cast<int>(Precision::f32) == ATTEST_F32);
static_assert(static_cast<int>(Precision::f16) == ATTEST_F16);
static_assert(static_cast<int>(Precision::bf16) == ATTEST_BF16);
static_assert(static_cast<int>(MaskKind::boolean) == ATTEST_MASK_BOOL);
static_assert(static_cast<int>(MaskKind::additive) == ATTEST_MASK_ADDITIVE);
static_assert(static_cast<int>(RopeStyle::interleaved) == ATTEST_ROPE_INTERLEAVED);
static_assert(static_cast<int>(RopeStyle::half) == ATTEST_ROPE_HALF);

struct DataType {
    std::uint8_t code, bits;
};

DataType data_type(ElementType type) noexcept {
    switch (type) {
        case ElementType::f64:
            return {ATTEST_DL_FLOAT, 64};
        case ElementType::f32:
            return {ATTEST_DL_FLOAT, 32};
        case ElementType::f16:
            return {ATTEST_DL_FLOAT, 16};
        case ElementType::bf16:
            return {ATTEST_DL_BFLOAT, 16};
        case ElementType::i32:
            return {ATTEST_DL_INT, 32};
        case ElementType::u8:
            return {ATTEST_DL_UINT, 8};
    }
    return {ATTEST_DL_UINT, 8};
}

std::uint32_t flags_of(const Problem& p) noexcept {
    std::uint32_t flags = 0;
    if (!p.mask.documents_q.empty()) flags |= ATTEST_FLAG_PACKED;
    if (p.cache.ring) flags |= ATTEST_FLAG_RING;
    if (p.cache.keys_rotated) flags |= ATTEST_FLAG_KEYS_ROTATED;
    return flags;
}

}  // namespace

protocol::Problem to_wire(const Problem& p) noexcept {
    protocol::Problem w{};
    w.batch = p.batch;
    w.heads_q = p.heads_q;
    w.heads_kv = p.heads_kv;
    w.len_q = p.len_q;
    w.len_kv = p.len_kv;
    w.dim_qk = p.dim_qk;
    w.dim_v = value_dim(p);
    w.format_q = static_cast<std::int32_t>(p.format_q);
    w.format_kv = static_cast<std::int32_t>(p.format_kv);
    w.format_o = static_cast<std::int32_t>(p.format_o);
    w.causal = p.mask.causal ? 1 : 0;
    w.scale = effective_scale(p);
    w.window_left = p.mask.window.left;
    w.window_right = p.mask.window.right;
    w.softcap = p.softcap;
    w.mask_kind = static_cast<std::int32_t>(p.mask.tensor.kind);
    w.rope_kind = static_cast<std::int32_t>(p.rope.style);
    if (p.rope.style != RopeStyle::none) {
        w.rope_base = p.rope.base;
        w.rope_dims = p.rope.dims == 0 ? p.dim_qk : p.rope.dims;
        w.rope_offset = p.rope.offset;
    }
    w.alibi = p.alibi ? 1 : 0;
    w.sink = p.sink ? 1 : 0;
    w.dropout_p = p.dropout.p;
    w.dropout_seed = p.dropout.seed;
    w.page_size = p.cache.present ? p.cache.page_size : 0;
    w.cache_len = p.cache.present ? p.cache.len : 0;
    w.splits = p.splits;
    w.want_lse = p.want_lse ? 1 : 0;
    w.want_grad = p.want_grad ? 1 : 0;
    w.flags = flags_of(p);
    return w;
}

protocol::Tensor to_wire(const Slot& slot) noexcept {
    protocol::Tensor t;
    t.role = slot.role;
    t.access = slot.access;
    t.data = slot.data;
    t.pages = slot.pages;
    t.pages_bytes = slot.pages_bytes;
    if (slot.is_workspace()) {
        t.code = ATTEST_DL_UINT;
        t.bits = 8;
        t.ndim = 1;
        t.shape = {static_cast<std::int64_t>(slot.span_bytes), 1, 1, 1};
        t.stride = {1, 1, 1, 1};
        return t;
    }
    const DataType type = data_type(slot.placement.type);
    t.code = type.code;
    t.bits = type.bits;
    t.ndim = static_cast<std::uint8_t>(slot.placement.ndim);
    t.shape = slot.placement.shape;
    t.stride = slot.placement.stride;
    return t;
}

}  // namespace attest
