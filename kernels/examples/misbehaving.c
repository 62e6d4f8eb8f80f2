/* Kernels that each misbehave in one way, by index: attest's own tests load them to see that every
 * death is noticed, named and survived. The order is the enum's; tests go by the manifest's name.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attest_kernel.h"

/* In misbehaving_throw.cpp: C cannot. */
int throw_runtime_error(void* state, const attest_call* c, char* error, size_t cap);
int throw_bad_alloc(void* state, const attest_call* c, char* error, size_t cap);

static volatile float seen;

static float* first(const attest_call* c, int role) {
    return (float*)c->tensor[role]->data;
}

static int64_t count(const DLTensor* t) {
    int64_t n = 1;
    for (int32_t i = 0; i < t->ndim; ++i) n *= t->shape[i];
    return n;
}

static int fill(const attest_call* c) {
    float* o = first(c, ATTEST_ROLE_O);
    for (int64_t i = 0; i < count(c->tensor[ATTEST_ROLE_O]); ++i) o[i] = 0;
    if (c->tensor[ATTEST_ROLE_LSE] == NULL) return 0;
    float* lse = first(c, ATTEST_ROLE_LSE);
    for (int64_t i = 0; i < count(c->tensor[ATTEST_ROLE_LSE]); ++i) lse[i] = 0;
    return 0;
}

static int well_behaved(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)error, (void)cap;
    return fill(c);
}

static int read_past_k(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)error, (void)cap;
    seen = first(c, ATTEST_ROLE_K)[count(c->tensor[ATTEST_ROLE_K]) + 16];
    return fill(c);
}

static int write_past_o(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)error, (void)cap;
    first(c, ATTEST_ROLE_O)[count(c->tensor[ATTEST_ROLE_O])] = 1;
    return fill(c);
}

static int read_before_q(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)error, (void)cap;
    seen = first(c, ATTEST_ROLE_Q)[-1];
    return fill(c);
}

static int write_before_lse(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)error, (void)cap;
    first(c, ATTEST_ROLE_LSE)[-2] = 1;
    return fill(c);
}

static int write_input(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)error, (void)cap;
    first(c, ATTEST_ROLE_V)[2] = 1;
    return fill(c);
}

static int write_past_workspace(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)error, (void)cap;
    memset(c->workspace, 0, c->workspace_bytes + 1);
    return fill(c);
}

static int write_between_rows(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)error, (void)cap;
    const DLTensor* o = c->tensor[ATTEST_ROLE_O];
    for (int64_t i = 0; i < o->shape[2] * o->strides[2] - (o->strides[2] - o->shape[3]); ++i) {
        first(c, ATTEST_ROLE_O)[i] = 0;
    }
    return 0;
}

static int never_return(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)c, (void)error, (void)cap;
    while (seen != 2) seen = 1;
    return 0;
}

static int use_all_memory(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)c, (void)error, (void)cap;
    for (;;) {
        char* more = malloc(8 << 20);
        if (more == NULL) abort();
        memset(more, 1, 8 << 20);
        usleep(1000);
    }
}

static int follow_wild_pointer(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)c, (void)error, (void)cap;
    volatile uintptr_t address = 8;
    *(volatile int*)address = 1;
    return 0;
}

static int call_exit(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)c, (void)error, (void)cap;
    exit(0);
}

static int call_abort(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)c, (void)error, (void)cap;
    abort();
}

static int leave_a_child_and_exit(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)c, (void)error, (void)cap;
    if (fork() == 0) {
        sleep(600);
        _exit(0);
    }
    _exit(7);
}

static int recurse(volatile char* below) {
    volatile char frame[4096];
    frame[0] = below[0];
    return seen == 2 ? 0 : recurse(frame) + frame[0];
}

static int overflow_stack(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)c, (void)error, (void)cap;
    volatile char frame[1] = {0};
    return recurse(frame);
}

__attribute__((no_sanitize("undefined"))) static int divide_by_zero(void* s, const attest_call* c,
                                                                    char* error, size_t cap) {
    (void)s, (void)c, (void)error, (void)cap;
    volatile int seven = 7, zero = 0;
    return seven / zero;
}

static int return_error(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)c;
    snprintf(error, cap, "the tile does not fit: 96 KiB of shared memory are needed");
    return 3;
}

static int leave_output_unwritten(void* s, const attest_call* c, char* error, size_t cap) {
    (void)s, (void)error, (void)cap;
    float* o = first(c, ATTEST_ROLE_O);
    for (int64_t i = 0; i + 1 < count(c->tensor[ATTEST_ROLE_O]); ++i) o[i] = 0;
    float* lse = first(c, ATTEST_ROLE_LSE);
    for (int64_t i = 0; i < count(c->tensor[ATTEST_ROLE_LSE]); ++i) lse[i] = 0;
    return 0;
}

static int read_workspace(void* s, const attest_call* c, char* error, size_t cap) {
    leave_output_unwritten(s, c, error, cap);
    first(c, ATTEST_ROLE_O)[count(c->tensor[ATTEST_ROLE_O]) - 1] =
        *(const float*)c->workspace * -0.5f;
    return 0;
}

static int yes(void* s, const attest_problem* p, char* reason, size_t cap) {
    (void)s, (void)p, (void)reason, (void)cap;
    return 1;
}

static int no(void* s, const attest_problem* p, char* reason, size_t cap) {
    (void)s, (void)p;
    snprintf(reason, cap, "not today");
    return 0;
}

static int crash_in_supports(void* s, const attest_problem* p, char* reason, size_t cap) {
    (void)p, (void)reason, (void)cap;
    follow_wild_pointer(s, NULL, NULL, 0);
    return 1;
}

static int crash_in_create(void** s, char* error, size_t cap) {
    (void)error, (void)cap;
    follow_wild_pointer(*s, NULL, NULL, 0);
    return 0;
}

static int fail_in_create(void** s, char* error, size_t cap) {
    (void)s;
    snprintf(error, cap, "no tables for this processor");
    return 5;
}

static size_t hundred_bytes(void* s, const attest_problem* p) {
    (void)s, (void)p;
    return 100;
}

/* A kernel of this name; forward and supports may be replaced. */
typedef struct {
    const char* manifest;
    int (*forward)(void*, const attest_call*, char*, size_t);
    int (*supports)(void*, const attest_problem*, char*, size_t);
    int (*create)(void**, char*, size_t);
    size_t (*workspace)(void*, const attest_problem*);
} kernel;

static const kernel kernels[] = {
    {"well_behaved", well_behaved, yes, NULL, NULL},
    {"read_past_k", read_past_k, yes, NULL, NULL},
    {"write_past_o", write_past_o, yes, NULL, NULL},
    {"read_before_q", read_before_q, yes, NULL, NULL},
    {"write_before_lse", write_before_lse, yes, NULL, NULL},
    {"write_input", write_input, yes, NULL, NULL},
    {"write_past_workspace", write_past_workspace, yes, NULL, hundred_bytes},
    {"write_between_rows", write_between_rows, yes, NULL, NULL},
    {"never_return", never_return, yes, NULL, NULL},
    {"use_all_memory", use_all_memory, yes, NULL, NULL},
    {"follow_wild_pointer", follow_wild_pointer, yes, NULL, NULL},
    {"call_exit", call_exit, yes, NULL, NULL},
    {"call_abort", call_abort, yes, NULL, NULL},
    {"leave_a_child_and_exit", leave_a_child_and_exit, yes, NULL, NULL},
    {"overflow_stack", overflow_stack, yes, NULL, NULL},
    {"divide_by_zero", divide_by_zero, yes, NULL, NULL},
    {"return_error", return_error, yes, NULL, NULL},
    {"leave_output_unwritten", leave_output_unwritten, yes, NULL, NULL},
    {"throw_runtime_error", throw_runtime_error, yes, NULL, NULL},
    {"throw_bad_alloc", throw_bad_alloc, yes, NULL, NULL},
    {"refuse_everything", well_behaved, no, NULL, NULL},
    {"crash_in_supports", well_behaved, crash_in_supports, NULL, NULL},
    {"crash_in_create", well_behaved, yes, crash_in_create, NULL},
    {"fail_in_create", well_behaved, yes, fail_in_create, NULL},
    {"read_workspace", read_workspace, yes, NULL, hundred_bytes},
};
enum { kernel_count = sizeof kernels / sizeof kernels[0] };

static void init_tables(void) {
    follow_wild_pointer(NULL, NULL, NULL, 0);
}

/* Past the table: mistakes that are found before any kernel runs. */
static const attest_kernel_api* broken(size_t which) {
    static attest_kernel_api api;
    api.struct_size = sizeof api;
    api.abi_version = ATTEST_ABI_VERSION;
    api.manifest =
        "{\"name\":\"mine\",\"version\":\"1\",\"formats\":[\"f32\"],\"memory\":\"host\","
        "\"dialect\":{\"causal\":\"bottom-right\"}}";
    api.supports = yes;
    api.forward = well_behaved;
    switch (which) {
        case 0:
            return &api; /* the manifest */
        case 1:
            api.abi_version = 2;
            return &api;
        case 2:
            api.struct_size = 24;
            return &api;
        case 3:
            api.forward = NULL;
            return &api;
        case 4:
            init_tables();
            return &api;
        default:
            return NULL;
    }
}

const attest_kernel_api* attest_get_kernel(uint32_t host_abi, size_t index) {
    static attest_kernel_api api;
    static char manifest[200];
    (void)host_abi;
    if (index >= kernel_count) return broken(index - kernel_count);
    const kernel* k = &kernels[index];
    snprintf(manifest, sizeof manifest,
             "{\"name\":\"%s\",\"version\":\"1\",\"formats\":[\"f32\"],"
             "\"features\":[\"layout\",\"lse\"]}",
             k->manifest);
    api.struct_size = sizeof api;
    api.abi_version = ATTEST_ABI_VERSION;
    api.manifest = manifest;
    api.supports = k->supports;
    api.create = k->create;
    api.workspace = k->workspace;
    api.forward = k->forward;
    return &api;
}
