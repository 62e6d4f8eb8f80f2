// What attest needs of attention_tiled.cu: the call, and which problems it takes.
#include <cuda_runtime.h>

#include <cstddef>

#include "kernels/interface/attest_kernel.h"
#include "kernels/simt/attest_call.hpp"

cudaError_t attention_tiled(const float* q, const float* k, const float* v, float* o, int heads,
                            int Tq, int Tk, int D, float scale, bool causal);

/// A tensor's place in device memory.
struct DeviceBuffer {
    float* data = nullptr;
    float* host;
    std::size_t bytes = sizeof(float);
    explicit DeviceBuffer(const DLTensor& t) : host(static_cast<float*>(t.data)) {
        for (int axis = 0; axis < t.ndim; ++axis) bytes *= static_cast<std::size_t>(t.shape[axis]);
        cudaMalloc(&data, bytes);
    }
    const DeviceBuffer& filled() const {
        cudaMemcpy(data, host, bytes, cudaMemcpyHostToDevice);
        return *this;
    }
    DeviceBuffer(const DeviceBuffer&) = delete;
    ~DeviceBuffer() { cudaFree(data); }
};

static int forward(void*, const attest_call* call, char* error, size_t cap) {
    const attest_problem& p = *call->problem;
    if (p.batch * p.heads_q * p.len_q == 0) return 0;
    const simt::AttestCall watched(*call);
    int code = 0;
    {  // freeing looks for writes beside an allocation, so it comes before finish()
        const DeviceBuffer q(*call->tensor[ATTEST_ROLE_Q]), k(*call->tensor[ATTEST_ROLE_K]),
            v(*call->tensor[ATTEST_ROLE_V]), o(*call->tensor[ATTEST_ROLE_O]);
        code = attention_tiled(q.filled().data, k.filled().data, v.filled().data, o.data,
                               static_cast<int>(p.batch * p.heads_q), static_cast<int>(p.len_q),
                               static_cast<int>(p.len_kv), static_cast<int>(p.dim_qk),
                               static_cast<float>(p.scale), p.causal != 0);
        cudaMemcpy(o.host, o.data, o.bytes, cudaMemcpyDeviceToHost);
    }
    return watched.finish(code, error, cap);
}

const attest_kernel_api* attest_get_kernel(uint32_t host_abi, size_t index) {
    static const attest_kernel_api api = {
        .struct_size = sizeof api,
        .abi_version = ATTEST_ABI_VERSION,
        .manifest =
            R"({"name":"attention_tiled","version":"1","formats":["f32"],"features":["causal"],)"
            R"("takes":{"dim_qk":{"most":64}},)"
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
