/* What the kernels that make trouble have in common: an answer, and a table of them by index. A
 * file names its table `kernels` and ends with TROUBLE(kernels). */
#include <stdint.h>
#include <stdio.h>

#include "attest_kernel.h"

static float* first(const attest_call* c, int role) {
    return (float*)c->tensor[role]->data;
}

static int64_t count(const DLTensor* t) {
    int64_t n = 1;
    for (int32_t i = 0; i < t->ndim; ++i) n *= t->shape[i];
    return n;
}

static int fill(const attest_call* c, float value) {
    for (int role = ATTEST_ROLE_O; role <= ATTEST_ROLE_LSE; ++role) {
        if (c->tensor[role] == NULL) continue;
        for (int64_t i = 0; i < count(c->tensor[role]); ++i) first(c, role)[i] = value;
    }
    return 0;
}

static inline int answer(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)error, (void)cap;
    return fill(c, 0);
}

/* A forward by its name, the answer it ends with, and its row of the table. */
#define FORWARD(name) static int name(void* s, const attest_call* c, char* error, size_t cap)
#define DONE answer(s, c, error, cap)
#define KERNEL(name) \
    { #name, name, NULL, NULL, yes }

static inline int yes(void* s, const attest_problem* p, char* reason, size_t cap) {
    (void)s, (void)p, (void)reason, (void)cap;
    return 1;
}

typedef struct {
    const char* name;
    int (*forward)(void*, const attest_call*, char*, size_t);
    size_t (*workspace)(void*, const attest_problem*);
    int (*create)(void**, char*, size_t);
    int (*supports)(void*, const attest_problem*, char*, size_t);
} kernel;

static inline const attest_kernel_api* api_of(const kernel* one) {
    static attest_kernel_api api;
    static char manifest[200];
    snprintf(manifest, sizeof manifest,
             "{\"name\":\"%s\",\"version\":\"1\",\"formats\":[\"f32\"],"
             "\"features\":[\"lse\",\"alibi\",\"causal\"]}",
             one->name);
    api.struct_size = sizeof api;
    api.abi_version = ATTEST_ABI_VERSION;
    api.manifest = manifest;
    api.supports = one->supports;
    api.create = one->create;
    api.workspace = one->workspace;
    api.forward = one->forward;
    return &api;
}

#define TROUBLE(table)                                                                \
    const attest_kernel_api* attest_get_kernel(uint32_t host_abi, size_t index) {     \
        (void)host_abi;                                                               \
        return index < sizeof table / sizeof table[0] ? api_of(&table[index]) : NULL; \
    }
