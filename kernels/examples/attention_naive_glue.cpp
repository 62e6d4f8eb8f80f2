// What attest needs of attention_naive.cu: the call, and which problems it takes.
#include <cuda_runtime.h>

#include "kernels/interface/attest_kernel.h"
#include "kernels/simt/attest_call.hpp"

cudaError_t attention_naive(const float* q, const float* k, const float* v, float* o, int heads,
                            int Tq, int Tk, int D, float scale, bool causal);

static int forward(void*, const attest_call* call, char* error, size_t cap) {
    const attest_problem& p = *call->problem;
    if (p.batch * p.heads_q * p.len_q == 0) return 0;
    const auto data = [call](int role) { return static_cast<float*>(call->tensor[role]->data); };
    const simt::AttestCall watched(*call);
    const int code =
        attention_naive(data(ATTEST_ROLE_Q), data(ATTEST_ROLE_K), data(ATTEST_ROLE_V),
                        data(ATTEST_ROLE_O), static_cast<int>(p.batch * p.heads_q),
                        static_cast<int>(p.len_q), static_cast<int>(p.len_kv),
                        static_cast<int>(p.dim_qk), static_cast<float>(p.scale), p.causal != 0);
    return watched.finish(code, error, cap);
}

const attest_kernel_api* attest_get_kernel(uint32_t host_abi, size_t index) {
    static const attest_kernel_api api = {
        .struct_size = sizeof api,
        .abi_version = ATTEST_ABI_VERSION,
        .manifest =
            R"({"name":"attention_naive","version":"1","formats":["f32"],"features":["causal"],)"
            R"("takes":{"dim_qk":{"most":256}},)"
            R"("simulated":true,"dialect":{"nonfinite":"unspecified"},)"
            R"("numerics":{"deterministic":true}})",
        .supports = nullptr,
        .create = nullptr,
        .destroy = nullptr,
        .workspace = nullptr,
        .forward = forward,
        .backward = nullptr,
        .append = nullptr};
    return host_abi == ATTEST_ABI_VERSION && index == 0 ? &api : nullptr;
}
