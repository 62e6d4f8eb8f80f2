/* attest_kernel.h: the interface between attest and an attention kernel from elsewhere.
 *
 * C99, self-contained, no dependency. A plug-in is a shared library that exports one symbol,
 * attest_get_kernel. attest loads it in a process of its own, lays the tensors into guarded memory
 * and calls forward(); it never sees the plug-in's sources.
 *
 * Rules: every struct begins with struct_size and is only ever appended to; a reader touches no
 * field beyond the size it was given. No exception crosses it. Errors are a non-zero return
 * and a text in the caller's buffer.
 */
#ifndef ATTEST_KERNEL_H
#define ATTEST_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ATTEST_ABI_VERSION 1u

#if defined(_WIN32)
#define ATTEST_EXPORT __declspec(dllexport)
#else
#define ATTEST_EXPORT __attribute__((visibility("default")))
#endif

/* DLPack's tensor, with its layout and dtype codes (1.1). Skipped where dlpack.h came first: the
 * types are the same. */
#ifndef DLPACK_DLPACK_H_
typedef struct {
    int32_t device_type; /* kDLCPU = 1, kDLCUDA = 2 */
    int32_t device_id;
} DLDevice;

typedef struct {
    uint8_t code;   /* kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLBfloat = 4 */
    uint8_t bits;   /* 8, 16, 32, 64 */
    uint16_t lanes; /* 1 */
} DLDataType;

typedef struct {
    void* data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t* shape;
    int64_t* strides; /* always given, in elements; may be anything, also 0 for a broadcast */
    uint64_t byte_offset;
} DLTensor;
#endif

enum {
    ATTEST_DL_INT = 0,
    ATTEST_DL_UINT = 1,
    ATTEST_DL_FLOAT = 2,
    ATTEST_DL_BFLOAT = 4,
    ATTEST_DL_CPU = 1,
    ATTEST_DL_CUDA = 2
};

/* format_q, format_kv, format_o */
enum { ATTEST_F64 = 0, ATTEST_F32 = 1, ATTEST_F16 = 2, ATTEST_BF16 = 3 };

/* mask_kind */
enum { ATTEST_MASK_NONE = 0, ATTEST_MASK_BOOL = 1, ATTEST_MASK_ADDITIVE = 2 };

/* rope_kind: interleaved pairs channels (0,1), (2,3), ...; half pairs (0, d/2), (1, d/2 + 1), ...
 */
enum { ATTEST_ROPE_NONE = 0, ATTEST_ROPE_INTERLEAVED = 1, ATTEST_ROPE_HALF = 2 };

/* flags */
enum {
    ATTEST_FLAG_PACKED = 1u << 0, /* packed sequences: batch is 1, both cu_seqlens are given */
    ATTEST_FLAG_RING = 1u << 1,   /* ring-buffer cache: k and v hold the last keys alone, all that
                                     the window reaches; slot = position mod their length axis */
    ATTEST_FLAG_KEYS_ROTATED = 1u << 2, /* RoPE is already applied to the keys in the cache */
    ATTEST_FLAG_D_LSE = 1u << 3         /* backward is given d_lse, the gradient of the LSE */
};

/* Tensors by role. All are logically [batch, heads, length, dim], whatever the memory layout. Those
 * of that shape begin at multiples of 64 bytes, with "layout" in the manifest at any multiple of an
 * element. Those with a number a token, a sequence or a head (LENS_Q to SINKS, D_SINKS, D_SLOPES)
 * are contiguous and begin at any multiple of an element. */
enum {
    ATTEST_ROLE_Q = 0,   /* [B,Hq,Tq,D] */
    ATTEST_ROLE_K,       /* [B,Hkv,Tk,D]; paged: [pages,Hkv,page_size,D]; ring: [B,Hkv,slots,D] */
    ATTEST_ROLE_V,       /* [B,Hkv,Tk,Dv]; paged alike */
    ATTEST_ROLE_O,       /* [B,Hq,Tq,Dv], poisoned before the call */
    ATTEST_ROLE_LSE,     /* [B,Hq,Tq] f32 (f64 where format_q is f64), poisoned before the call */
    ATTEST_ROLE_MASK,    /* broadcastable to [B,Hq,Tq,Tk]: an axis that takes.mask_shared names may
                            have extent 1, and stride 0 then; uint8 (1 = visible) or additive float
                            of format_q */
    ATTEST_ROLE_LENS_Q,  /* [B] int32; rows at or past it are zeros with LSE -inf */
    ATTEST_ROLE_LENS_KV, /* [B] int32; in forward of all keys, the call's own too; in append of
                            those before */
    ATTEST_ROLE_CU_SEQLENS_Q, /* [documents + 1] int32 */
    ATTEST_ROLE_CU_SEQLENS_KV,
    ATTEST_ROLE_BLOCK_TABLE,  /* [B, pages of the longest sequence] int32; entries past a sequence's
                                 pages are -1 */
    ATTEST_ROLE_POSITIONS,    /* [B,Tq] int32, without rope_offset; absent: cache_len + i */
    ATTEST_ROLE_ALIBI_SLOPES, /* [Hq] f32 */
    ATTEST_ROLE_SINKS,        /* [Hq] f32 */
    ATTEST_ROLE_K_SCALE,      /* broadcastable to k, v: quantised caches; given to nobody yet */
    ATTEST_ROLE_V_SCALE,
    ATTEST_ROLE_K_NEW, /* [B,Hkv,Tnew,D]: append */
    ATTEST_ROLE_V_NEW,
    ATTEST_ROLE_D_O, /* gradients, as their forms */
    ATTEST_ROLE_D_Q,
    ATTEST_ROLE_D_K,
    ATTEST_ROLE_D_V,
    ATTEST_ROLE_D_MASK,
    ATTEST_ROLE_D_SINKS,
    ATTEST_ROLE_DROPOUT_KEEP, /* [B,Hq,Tq,Tk] uint8, optional output: the mask that was used */
    ATTEST_ROLE_D_SLOPES,     /* [Hq] f32: the gradient of alibi_slopes */
    ATTEST_ROLE_D_LSE,        /* [B,Hq,Tq], as lse: what backward is given beside d_o */
    ATTEST_ROLE_COUNT
};

/* "q", "lens_kv", ...: a role as reports and the Python interface name it. */
static inline const char* attest_role_name(int role) {
    /* clang-format off */
    static const char* const names[ATTEST_ROLE_COUNT] = {
        "q", "k", "v", "o", "lse", "mask", "lens_q", "lens_kv", "cu_seqlens_q", "cu_seqlens_kv",
        "block_table", "positions", "alibi_slopes", "sinks", "k_scale", "v_scale", "k_new", "v_new",
        "d_o", "d_q", "d_k", "d_v", "d_mask", "d_sinks", "dropout_keep", "d_slopes", "d_lse"};
    /* clang-format on */
    return names[role];
}

/* Bytes from a tensor's first element to the end of its last, what lies between rows included. */
static inline size_t attest_extent_bytes(const DLTensor* tensor) {
    int64_t last = 0;
    for (int axis = 0; axis < tensor->ndim; ++axis) {
        if (tensor->shape[axis] == 0) return 0;
        last += (tensor->shape[axis] - 1) * tensor->strides[axis];
    }
    return (size_t)(last + 1) * ((tensor->dtype.bits + 7u) / 8u);
}

/* What is computed. Lengths are maxima where sequences differ.
 *
 *   S_ij = cap(scale q_i.k_j) + bias_ij,  O_i = sum_j softmax(S_i)_j v_j,  LSE_i = log sum_j
 * exp(S_ij), the sink included. */
typedef struct attest_problem {
    size_t struct_size;
    int64_t batch, heads_q, heads_kv;
    int64_t len_q, len_kv;
    int64_t dim_qk, dim_v;
    int32_t format_q, format_kv, format_o;
    double scale;
    int32_t causal; /* 0 or 1; the alignment is what the manifest's dialect declares */
    int64_t window_left, window_right; /* -1 = none */
    double softcap;                    /* 0 = none */
    int32_t mask_kind;
    int32_t rope_kind;
    double rope_base;
    int64_t rope_dims, rope_offset;
    int32_t alibi, sink;
    double dropout_p;
    uint64_t dropout_seed;
    int64_t page_size; /* 0 = contiguous */
    int64_t cache_len;
    int64_t splits; /* 0 = the kernel's choice */
    int32_t want_lse, want_grad;
    uint32_t flags;
    uint32_t call_number; /* of its case, from 0: a runtime that is free to choose, as of a schedule
                             of threads, draws its choice from it, so that a case replays */
} attest_problem;

typedef struct attest_call {
    size_t struct_size;
    const attest_problem* problem;
    void* workspace;
    size_t workspace_bytes;
    void* stream; /* CUDA: a cudaStream_t; host: NULL */
    const DLTensor* tensor[ATTEST_ROLE_COUNT];
} attest_call;

typedef struct attest_kernel_api {
    size_t struct_size;
    uint32_t abi_version; /* ATTEST_ABI_VERSION */
    const char* manifest; /* JSON text, UTF-8 */

    /* 1: yes. 0: no, with a reason. Asked of what the manifest lists alone; NULL: yes to it all. */
    int (*supports)(void* state, const attest_problem* problem, char* reason, size_t reason_cap);
    int (*create)(void** state, char* error, size_t error_cap);
    void (*destroy)(void* state);
    /* Bytes wanted; they are given poisoned (NaN in every float format), never zeroed. */
    size_t (*workspace)(void* state, const attest_problem* problem);
    /* 0: done. Any other value: an error with a text, neither a pass nor a refusal. */
    int (*forward)(void* state, const attest_call* call, char* error, size_t error_cap);
    int (*backward)(void* state, const attest_call* call, char* error, size_t error_cap);
    int (*append)(void* state, const attest_call* call, char* error, size_t error_cap);
} attest_kernel_api;

/* The one exported symbol: kernel number `index` of this library, NULL past the last or where
 * host_abi is not spoken. Every function but forward may be NULL. */
ATTEST_EXPORT const attest_kernel_api* attest_get_kernel(uint32_t host_abi, size_t index);

#ifdef __cplusplus
}
#endif
#endif /* ATTEST_KERNEL_H */
