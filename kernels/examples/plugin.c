/* An attention kernel as attest can judge it: copy this file, rename it, put your own forward() in.
 *
 *     cc -std=c99 -O2 -fPIC -shared -I <folder of attest_kernel.h> plugin.c -o libmine.so -lm
 *     attest check ./libmine.so
 *
 * This one is the definition, one query at a time: f32, any strides, causal, grouped heads, LSE. */
#include "attest_kernel.h"

#include <math.h>
#include <stdio.h>

/* What it is and what it can do. Whatever is not listed in features is never asked for. */
static const char manifest[] =
    "{\"name\": \"plugin\", \"version\": \"1\", \"formats\": [\"f32\"],"
    " \"features\": [\"causal\", \"gqa\", \"dim_v\", \"scale\", \"layout\", \"lse\"],"
    " \"numerics\": {\"exp_ulp\": 1, \"deterministic\": true, \"batch_invariant\": true}}";

static int supports(void* state, const attest_problem* p, char* reason, size_t reason_cap) {
    (void)state;
    const char* no = NULL;
    if (p->format_q != ATTEST_F32 || p->format_kv != ATTEST_F32 || p->format_o != ATTEST_F32) {
        no = "f32 only";
    } else if (p->mask_kind || p->window_left >= 0 || p->window_right >= 0 || p->flags) {
        no = "the only mask is causal";
    } else if (p->softcap != 0 || p->sink || p->alibi || p->rope_kind || p->dropout_p != 0) {
        no = "no soft cap, sink, ALiBi, RoPE or dropout";
    } else if (p->page_size || p->cache_len || p->splits) {
        no = "no cache";
    }
    if (no == NULL) return 1;
    snprintf(reason, reason_cap, "%s", no);
    return 0;
}

/* Room for the scores of one query. It comes poisoned, never zeroed. */
static size_t workspace(void* state, const attest_problem* p) {
    (void)state;
    return (size_t)p->len_kv * sizeof(float);
}

/* A row of a tensor: element c of it is row[c * t->strides[3]]. Strides count elements. */
static float* row_of(const DLTensor* t, int64_t b, int64_t h, int64_t i) {
    return (float*)t->data + b * t->strides[0] + h * t->strides[1] + i * t->strides[2];
}

static void attend(const attest_call* c, int64_t b, int64_t h, int64_t i) {
    const attest_problem* p = c->problem;
    const DLTensor *tq = c->tensor[ATTEST_ROLE_Q], *tk = c->tensor[ATTEST_ROLE_K];
    const DLTensor *tv = c->tensor[ATTEST_ROLE_V], *to = c->tensor[ATTEST_ROLE_O];
    const DLTensor* lse = c->tensor[ATTEST_ROLE_LSE];
    const int64_t h_kv = h / (p->heads_q / p->heads_kv);
    /* Bottom-right: the last query sees every key. */
    const int64_t last = p->causal ? i + p->len_kv - p->len_q : p->len_kv - 1;
    const float* q = row_of(tq, b, h, i);
    float* o = row_of(to, b, h, i);
    float* s = c->workspace;
    float m = -INFINITY, sum = 0;
    for (int64_t j = 0; j <= last; ++j) {
        const float* k = row_of(tk, b, h_kv, j);
        float dot = 0;
        for (int64_t x = 0; x < p->dim_qk; ++x)
            dot += q[x * tq->strides[3]] * k[x * tk->strides[3]];
        s[j] = dot * (float)p->scale;
        m = s[j] > m || isnan(s[j]) ? s[j] : m;
    }
    for (int64_t j = 0; j <= last; ++j) sum += s[j] = expf(s[j] - m);
    for (int64_t x = 0; x < p->dim_v; ++x) {
        float out = 0;
        for (int64_t j = 0; j <= last; ++j) {
            out += s[j] * row_of(tv, b, h_kv, j)[x * tv->strides[3]];
        }
        o[x * to->strides[3]] = last < 0 ? 0 : out / sum; /* a query that sees no key: zeros */
    }
    if (lse != NULL) *row_of(lse, b, h, i) = last < 0 ? -INFINITY : m + logf(sum);
}

static int forward(void* state, const attest_call* c, char* error, size_t error_cap) {
    (void)state, (void)error, (void)error_cap; /* a text, and any number but 0, would be an error */
    for (int64_t b = 0; b < c->problem->batch; ++b)
        for (int64_t h = 0; h < c->problem->heads_q; ++h)
            for (int64_t i = 0; i < c->problem->len_q; ++i) attend(c, b, h, i);
    return 0;
}

const attest_kernel_api* attest_get_kernel(uint32_t host_abi, size_t index) {
    static const attest_kernel_api api = {.struct_size = sizeof(attest_kernel_api),
                                          .abi_version = ATTEST_ABI_VERSION,
                                          .manifest = manifest,
                                          .supports = supports,
                                          .workspace = workspace,
                                          .forward = forward};
    return host_abi == ATTEST_ABI_VERSION && index == 0 ? &api : NULL;
}
