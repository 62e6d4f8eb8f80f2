/* What attest needs of attention.c: how it is called, and which problems it takes. Features that
 * are not listed (another layout, scale, a mask tensor, ...) are never asked for. */
#include <stdbool.h>

#include "attest_kernel.h"

void attention(const float* q, const float* k, const float* v, float* o, int B, int H, int T, int D,
               bool causal);

static int forward(void* state, const attest_call* c, char* error, size_t error_cap) {
    (void)state, (void)error, (void)error_cap;
    const attest_problem* p = c->problem;
    attention(c->tensor[ATTEST_ROLE_Q]->data, c->tensor[ATTEST_ROLE_K]->data,
              c->tensor[ATTEST_ROLE_V]->data, c->tensor[ATTEST_ROLE_O]->data, (int)p->batch,
              (int)p->heads_q, (int)p->len_q, (int)p->dim_qk, p->causal != 0);
    return 0;
}

const attest_kernel_api* attest_get_kernel(uint32_t host_abi, size_t index) {
    static const attest_kernel_api api = {
        .struct_size = sizeof api,
        .abi_version = ATTEST_ABI_VERSION,
        .manifest =
            "{\"name\": \"attention\", \"version\": \"1\", \"formats\": [\"f32\"],"
            " \"features\": [\"causal\"], \"takes\": {\"queries\": \"as_keys\"}}",
        .forward = forward};
    return host_abi == ATTEST_ABI_VERSION && index == 0 ? &api : NULL;
}
