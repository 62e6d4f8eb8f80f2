#pragma once
// The border's functions around decode_body.hpp.

#include "kernels/cpu/border.hpp"
#include "kernels/cpu/decode_body.hpp"

namespace attest::kernel {

/// The problem as the kernel takes it.
template <Defect defect>
attest_problem taken(attest_problem p) noexcept {
    if constexpr (defect == Defect::m164_rotates_two_more) {
        if (p.rope_dims > 0 && p.rope_dims + 2 <= p.dim_qk) p.rope_dims += 2;
    }
    return p;
}

template <Defect defect, typename Real>
int decode_with(const Call& call, Scratch scratch, char* error, std::size_t cap) {
    DecodeBuffers<Real> buffers(call.problem, scratch);
    if (!scratch.enough()) return fail(error, cap, "the workspace is smaller than asked for");
    SplitDecode<defect, Real>(call, buffers).run();
    write_absent_rows(call);
    return 0;
}

template <Defect defect>
int split_decode(void*, const attest_call* from, char* error, std::size_t cap) {
    Call call;
    if (!read_call(from, call, error, cap)) return 1;
    call.problem = taken<defect>(call.problem);
    const Scratch scratch(from->workspace, from->workspace_bytes);
    return call.wide ? decode_with<defect, double>(call, scratch, error, cap)
                     : decode_with<defect, float>(call, scratch, error, cap);
}

inline int decode_supports(void*, const attest_problem* problem, char* reason, std::size_t cap) {
    return answer(Offer{}, problem, reason, cap);
}

template <Defect defect>
std::size_t decode_workspace(void*, const attest_problem* problem) {
    const attest_problem p = taken<defect>(*problem);
    Scratch scratch;
    DecodeBuffers<double> widest(p, scratch);
    return scratch.wanted();
}

}  // namespace attest::kernel
