#include "kernels/cpu/supports.hpp"

#include <cmath>
#include <cstdint>
#include <cstdio>

namespace attest::cpu {
namespace {

const char* refusal(const Offer& offer, const attest_problem& p) noexcept {
    if (p.struct_size < sizeof(attest_problem))
        return "the problem's struct is older than this kernel";
    if (p.want_grad != 0 && !offer.gradients) return "gradients: this kernel has no backward pass";
    if (p.want_grad != 0 && (p.page_size != 0 || (p.flags & ATTEST_FLAG_RING) != 0))
        return "gradients of pages and ring buffers are not implemented";
    if (p.dropout_p != 0 && !offer.dropout) return "dropout is not implemented";
    if (!(p.dropout_p >= 0 && p.dropout_p < 1)) return "the dropout rate must be in [0, 1)";
    if ((p.flags & ATTEST_FLAG_RING) != 0 && !offer.ring)
        return "ring-buffer caches are not implemented";
    if ((p.flags & ATTEST_FLAG_PACKED) != 0 && !offer.documents) {
        return "packed documents are not implemented";
    }
    if (p.page_size != 0 && !offer.paged) return "paged caches are not implemented";
    if (p.splits != 0 && !offer.splits) return "splits: this kernel does not split the keys";
    if (p.rope_kind != ATTEST_ROPE_NONE && !offer.rope) return "RoPE is not implemented";
    const bool f64 =
        p.format_q == ATTEST_F64 || p.format_kv == ATTEST_F64 || p.format_o == ATTEST_F64;
    if (f64 && !offer.f64) return "f64 is not implemented";
    if (p.heads_kv < 1 || p.heads_q % p.heads_kv != 0) {
        return "heads_q must be a multiple of heads_kv";
    }
    if (!std::isfinite(p.scale)) return "the scale must be finite";
    return nullptr;
}

}  // namespace

int answer(const Offer& offer, const attest_problem* problem, char* reason,
           std::size_t reason_cap) noexcept {
    const char* no = refusal(offer, *problem);
    if (no == nullptr) return 1;
    std::snprintf(reason, reason_cap, "%s", no);
    return 0;
}

int fail(char* error, std::size_t error_cap, const char* text) noexcept {
    std::snprintf(error, error_cap, "%s", text);
    return 1;
}

}  // namespace attest::cpu
