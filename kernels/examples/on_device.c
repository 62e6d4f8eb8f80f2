/* Kernels that declare CUDA memory, over a stand-in for a GPU, for the worker's own tests. What
 * they compute does not matter. */
#include <signal.h>
#include <stddef.h>
#include <stdio.h>

#include "attest_kernel.h"
#include "stand_in_cuda.h"

static int64_t size_of(const DLTensor* t) {
    return t->shape[0] * t->shape[1] * t->shape[2] * t->shape[3];
}
static device_args args_of(const attest_call* c) {
    const DLTensor *o = c->tensor[ATTEST_ROLE_O], *q = c->tensor[ATTEST_ROLE_Q];
    return (device_args){o->data, q->data, size_of(o), size_of(q)};
}

/* Device code. */
static void ones(const device_args* a) {
    for (int64_t i = 0; i < a->o_size; ++i) a->o[i] = 1;
}
static void ones_and_one_behind(const device_args* a) {
    ones(a);
    a->o[a->o_size] = 1;
}
static void ones_and_look_behind(const device_args* a) {
    ones(a);
    (void)*(volatile float*)(a->q + a->q_size);
}
static void ones_and_look_before(const device_args* a) {
    ones(a);
    (void)*(volatile float*)(a->q - 1);
}
static void ones_and_change_an_input(const device_args* a) {
    ones(a);
    a->q[0] += 1;
}
static void fault(const device_args* a) {
    (void)a;
    raise(SIGSEGV);
}

/* One launch in the stream that was given, where everything is as attest_kernel.h says. */
static int launch(const attest_call* c, void (*code)(const device_args*)) {
    const DLTensor* o = c->tensor[ATTEST_ROLE_O];
    if (o->device.device_type != ATTEST_DL_CUDA || c->stream == NULL) return 1;
    device_launch(code, args_of(c), c->stream);
    return cudaGetLastError(); /* as everybody asks after a launch */
}

typedef int forward(void* state, const attest_call* c, char* error, size_t error_cap);
static int write_ones(void* state, const attest_call* c, char* error, size_t error_cap) {
    (void)state, (void)error, (void)error_cap;
    return launch(c, ones);
}
static int write_behind(void* state, const attest_call* c, char* error, size_t error_cap) {
    (void)state, (void)error, (void)error_cap;
    return launch(c, ones_and_one_behind);
}
static int change_an_input(void* state, const attest_call* c, char* error, size_t error_cap) {
    (void)state, (void)error, (void)error_cap;
    return launch(c, ones_and_change_an_input);
}
/* Three queries are its end, whatever is asked afterwards. */
static int lose_the_context(void* state, const attest_call* c, char* error, size_t error_cap) {
    (void)state, (void)error, (void)error_cap;
    return launch(c, c->problem->len_q == 3 ? fault : ones);
}
static int write_nothing(void* state, const attest_call* c, char* error, size_t error_cap) {
    (void)state, (void)c, (void)error, (void)error_cap;
    return 0;
}
static int look_behind(void* state, const attest_call* c, char* error, size_t error_cap) {
    (void)state, (void)error, (void)error_cap;
    return launch(c, ones_and_look_behind);
}
static int look_before(void* state, const attest_call* c, char* error, size_t error_cap) {
    (void)state, (void)error, (void)error_cap;
    return launch(c, ones_and_look_before);
}
static int use_the_default_stream(void* state, const attest_call* c, char* error,
                                  size_t error_cap) {
    (void)state, (void)error, (void)error_cap;
    device_launch(ones, args_of(c), NULL);
    return 0;
}
static int use_the_first_calls_stream(void* state, const attest_call* c, char* error,
                                      size_t error_cap) {
    (void)state, (void)error, (void)error_cap;
    static void* first = NULL;
    if (first == NULL) first = c->stream;
    device_launch(ones, args_of(c), first);
    return 0;
}
static int leave_the_first_calls_result(void* state, const attest_call* c, char* error,
                                        size_t error_cap) {
    (void)state, (void)error, (void)error_cap;
    static int done = 0;
    return done++ == 0 ? launch(c, ones) : 0;
}
static int write_ones_where_aligned(void* state, const attest_call* c, char* error,
                                    size_t error_cap) {
    for (int role = 0; role < ATTEST_ROLE_COUNT; ++role)
        if (c->tensor[role] != NULL && (uintptr_t)c->tensor[role]->data % 64 != 0) return 1;
    return write_ones(state, c, error, error_cap);
}

static void say_goodbye(void* state) {
    (void)state;
    puts("goodbye");
    fflush(stdout);
}

static int supports(void* state, const attest_problem* p, char* reason, size_t reason_cap) {
    (void)state, (void)p, (void)reason, (void)reason_cap;
    return 1;
}

const attest_kernel_api* attest_get_kernel(uint32_t host_abi, size_t index) {
    static forward* const forwards[] = {write_ones,
                                        write_behind,
                                        change_an_input,
                                        lose_the_context,
                                        write_nothing,
                                        look_behind,
                                        look_before,
                                        use_the_default_stream,
                                        use_the_first_calls_stream,
                                        leave_the_first_calls_result,
                                        write_ones_where_aligned};
    static attest_kernel_api api;
    if (host_abi != ATTEST_ABI_VERSION || index >= sizeof forwards / sizeof forwards[0])
        return NULL;
    api.struct_size = sizeof api;
    api.abi_version = ATTEST_ABI_VERSION;
    /* Features without "layout" promise alignment. */
    api.manifest = forwards[index] == write_ones_where_aligned
                       ? "{\"name\":\"on_device\",\"version\":\"1\",\"formats\":[\"f32\"],"
                         "\"memory\":\"cuda\"}"
                       : "{\"name\":\"on_device\",\"version\":\"1\",\"formats\":[\"f32\"],"
                         "\"memory\":\"cuda\",\"features\":[\"layout\",\"lse\",\"dim_v\"]}";
    api.supports = supports;
    api.destroy = say_goodbye;
    api.forward = forwards[index];
    return &api;
}
