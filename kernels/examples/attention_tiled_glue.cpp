// What attest needs of attention_tiled.cu: which problems it takes, and the call.
#include <cuda_runtime.h>

#include <cstdio>

#include "kernels/examples/dense_call.hpp"
#include "kernels/simt/attest_call.hpp"

cudaError_t attention_tiled(const float* q, const float* k, const float* v, float* o, int heads,
                            int Tq, int Tk, int D, float scale, bool causal);

/// Device memory, from a host array or for the answer.
struct DeviceBuffer {
    float* data = nullptr;
    explicit DeviceBuffer(std::size_t size) { cudaMalloc(&data, size * sizeof(float)); }
    explicit DeviceBuffer(const std::vector<float>& host) : DeviceBuffer(host.size()) {
        cudaMemcpy(data, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice);
    }
    ~DeviceBuffer() { cudaFree(data); }
};

static int supports(void*, const attest_problem* p, char* reason, size_t cap) {
    const char* why = refusal(*p, 64);
    if (why != nullptr) std::snprintf(reason, cap, "%s", why);
    return why == nullptr ? 1 : 0;
}

static int forward(void*, const attest_call* call, char* error, size_t cap) {
    const attest_problem& p = *call->problem;
    if (p.batch * p.heads_q * p.len_q == 0) return 0;
    const std::vector<float> q = dense(call->tensor[ATTEST_ROLE_Q]),
                             k = dense(call->tensor[ATTEST_ROLE_K]),
                             v = dense(call->tensor[ATTEST_ROLE_V]);
    std::vector<float> o(q.size());
    const simt::AttestCall watched(*call);
    int code = 0;
    {  // freeing looks for writes beside an allocation, so it comes before finish()
        const DeviceBuffer d_q(q), d_k(k), d_v(v), d_o(o.size());
        code = attention_tiled(d_q.data, d_k.data, d_v.data, d_o.data,
                               static_cast<int>(p.batch * p.heads_q), static_cast<int>(p.len_q),
                               static_cast<int>(p.len_kv), static_cast<int>(p.dim_qk),
                               static_cast<float>(p.scale), p.causal != 0);
        cudaMemcpy(o.data(), d_o.data, o.size() * sizeof(float), cudaMemcpyDeviceToHost);
    }
    undense(o, call->tensor[ATTEST_ROLE_O]);
    return watched.finish(code, error, cap);
}

const attest_kernel_api* attest_get_kernel(uint32_t host_abi, size_t index) {
    static const attest_kernel_api api = {
        sizeof api,
        ATTEST_ABI_VERSION,
        R"({"name":"attention_tiled","version":"1","formats":["f32"],"features":["causal"],)"
        R"("simulated":true,"dialect":{"nonfinite":"unspecified"},)"
        R"("numerics":{"deterministic":true}})",
        supports,
        nullptr,
        nullptr,
        nullptr,
        forward,
        nullptr,
        nullptr};
    return host_abi == ATTEST_ABI_VERSION && index == 0 ? &api : nullptr;
}
