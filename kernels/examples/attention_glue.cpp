// What attest needs of attention.cpp: how it is called, and which problems it takes. Features that
// are not listed (another layout, scale, a mask tensor, ...) are never asked for.
#include "attest_kernel.h"

void attention(const float* q, const float* k, const float* v, float* o, int B, int H, int T, int D,
               bool causal);

static int forward(void*, const attest_call* c, char*, size_t) {
    const attest_problem& p = *c->problem;
    const auto data = [c](int role) { return static_cast<float*>(c->tensor[role]->data); };
    attention(data(ATTEST_ROLE_Q), data(ATTEST_ROLE_K), data(ATTEST_ROLE_V), data(ATTEST_ROLE_O),
              static_cast<int>(p.batch), static_cast<int>(p.heads_q), static_cast<int>(p.len_q),
              static_cast<int>(p.dim_qk), p.causal != 0);
    return 0;
}

const attest_kernel_api* attest_get_kernel(uint32_t host_abi, size_t index) {
    static const attest_kernel_api api = [] {
        attest_kernel_api api{};
        api.struct_size = sizeof api;
        api.abi_version = ATTEST_ABI_VERSION;
        api.manifest = R"({"name": "attention", "version": "1", "formats": ["f32"],)"
                       R"( "features": ["causal"], "takes": {"queries": "as_keys"}})";
        api.forward = forward;
        return api;
    }();
    return host_abi == ATTEST_ABI_VERSION && index == 0 ? &api : nullptr;
}
