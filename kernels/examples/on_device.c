/* Kernels that declare CUDA memory, for the worker's own tests: with a stand-in for the CUDA
 * runtime, whose device memory is the heap's. What they compute does not matter. */
#include <stdlib.h>
#include <string.h>

#include "attest_kernel.h"

/* The stand-in. A call may lose the context; then every further one fails, as on a GPU. */
static int lost = 0, streams = 0;
ATTEST_EXPORT int cudaMalloc(void** p, size_t bytes) {
    *p = malloc(bytes);
    return lost;
}
ATTEST_EXPORT int cudaFree(void* p) {
    free(p);
    return lost;
}
ATTEST_EXPORT int cudaMemcpy(void* to, const void* from, size_t bytes, int kind) {
    (void)kind;
    memcpy(to, from, bytes);
    return lost;
}
ATTEST_EXPORT int cudaStreamCreate(void** stream) {
    static char all[8];
    *stream = &all[streams++ % 8];
    return lost;
}
ATTEST_EXPORT int cudaStreamSynchronize(void* stream) {
    (void)stream;
    return lost;
}
ATTEST_EXPORT int cudaGetDeviceCount(int* count) {
    *count = getenv("ATTEST_TEST_NO_DEVICE") != NULL ? 0 : 1;
    return 0;
}
ATTEST_EXPORT const char* cudaGetErrorString(int code) {
    return code == 700 ? "an illegal memory access was encountered" : "no error";
}

static int64_t size_of(const DLTensor* t) {
    return t->shape[0] * t->shape[1] * t->shape[2] * t->shape[3];
}

/* Ones, where everything is as attest_kernel.h says; dense outputs alone are asked of it. */
static int write_ones(void* state, const attest_call* c, char* error, size_t error_cap) {
    (void)state, (void)error, (void)error_cap;
    const DLTensor* o = c->tensor[ATTEST_ROLE_O];
    if (o->device.device_type != ATTEST_DL_CUDA || c->stream == NULL) return 1;
    for (int64_t i = 0; i < size_of(o); ++i) ((float*)o->data)[i] = 1;
    return 0;
}
static int write_behind(void* state, const attest_call* c, char* error, size_t error_cap) {
    const DLTensor* o = c->tensor[ATTEST_ROLE_O];
    ((float*)o->data)[size_of(o)] = 1;
    return write_ones(state, c, error, error_cap);
}
static int change_an_input(void* state, const attest_call* c, char* error, size_t error_cap) {
    ((float*)c->tensor[ATTEST_ROLE_Q]->data)[0] += 1;
    return write_ones(state, c, error, error_cap);
}
static int lose_the_context(void* state, const attest_call* c, char* error, size_t error_cap) {
    lost = 700;
    return write_ones(state, c, error, error_cap);
}
static int write_nothing(void* state, const attest_call* c, char* error, size_t error_cap) {
    (void)state, (void)c, (void)error, (void)error_cap;
    return 0;
}

static int supports(void* state, const attest_problem* p, char* reason, size_t reason_cap) {
    (void)state, (void)p, (void)reason, (void)reason_cap;
    return 1;
}

const attest_kernel_api* attest_get_kernel(uint32_t host_abi, size_t index) {
    static int (*const forwards[])(void*, const attest_call*, char*, size_t) = {
        write_ones, write_behind, change_an_input, lose_the_context, write_nothing};
    static attest_kernel_api api;
    if (host_abi != ATTEST_ABI_VERSION || index >= sizeof forwards / sizeof forwards[0])
        return NULL;
    api.struct_size = sizeof api;
    api.abi_version = ATTEST_ABI_VERSION;
    api.manifest =
        "{\"name\":\"on_device\",\"version\":\"1\",\"formats\":[\"f32\"],\"memory\":\"cuda\"}";
    api.supports = supports;
    api.forward = forwards[index];
    return &api;
}
