#include "kernels/cuda/simt_buffers.hpp"

namespace attest_cuda {
namespace {

constexpr const char* names[] = {"q",
                                 "k",
                                 "v",
                                 "o",
                                 "lse",
                                 "mask",
                                 "lens_q",
                                 "lens_kv",
                                 "cu_seqlens_q",
                                 "cu_seqlens_kv",
                                 "block_table",
                                 "positions",
                                 "alibi_slopes",
                                 "sinks",
                                 "k_scale",
                                 "v_scale",
                                 "k_new",
                                 "v_new",
                                 "d_o",
                                 "d_q",
                                 "d_k",
                                 "d_v",
                                 "d_mask",
                                 "d_sinks",
                                 "dropout_keep"};
static_assert(sizeof names / sizeof names[0] == ATTEST_ROLE_COUNT);

/// From the first element to behind the last, gaps between rows included.
std::int64_t extent_bytes(const DLTensor& t) {
    std::int64_t last = 0;
    for (int axis = 0; axis < t.ndim; ++axis) {
        if (t.shape[axis] == 0) return 0;
        last += (t.shape[axis] - 1) * t.strides[axis];
    }
    return (last + 1) * ((t.dtype.bits + 7) / 8);
}

}  // namespace

Buffers::Buffers(const attest_call* call) {
    if (simt::checker() == nullptr) return;
    for (int role = 0; role < ATTEST_ROLE_COUNT; ++role) {
        const DLTensor* t = call->tensor[role];
        if (t == nullptr) continue;
        add(static_cast<char*>(t->data) + t->byte_offset, extent_bytes(*t), names[role],
            role != ATTEST_ROLE_O && role != ATTEST_ROLE_LSE);
    }
    add(call->workspace, static_cast<std::int64_t>(call->workspace_bytes), "the workspace", false);
}

Buffers::~Buffers() {
    for (int i = 0; i < count_; ++i) simt::checker()->remove_buffer(known_[i]);
}

void Buffers::add(void* p, std::int64_t bytes, const char* name, bool defined) {
    if (p == nullptr || bytes <= 0) return;
    // Beside it lie guard pages, which no run-time check can improve on.
    simt::checker()->add_buffer(p, static_cast<std::size_t>(bytes), name, defined, 0);
    known_[count_++] = p;
}

}  // namespace attest_cuda
