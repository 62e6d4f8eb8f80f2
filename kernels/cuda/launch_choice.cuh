#pragma once
// Which of a kernel's instances a call runs, and on what grid.
#include "kernels/cuda/launch.hpp"
#include "kernels/simt/simt.hpp"

namespace attest::cuda {

inline dim3 rows_grid(const Params& p, std::int64_t rows) {
    return dim3(static_cast<unsigned>((p.len_q + rows - 1) / rows),
                static_cast<unsigned>(p.heads_q), static_cast<unsigned>(p.batch));
}

/// Calls run.template operator()<T>() for the element's type.
template <typename Run>
int with_element(ElementFormat element, Run run) {
    switch (element) {
        case ElementFormat::f32:
            return run.template operator()<float>();
        case ElementFormat::f16:
            return run.template operator()<__half>();
        case ElementFormat::bf16:
            return run.template operator()<__nv_bfloat16>();
    }
    return cudaErrorInvalidValue;
}

/// Calls run.template operator()<DIM>() for the smallest padded head dimension that holds both.
template <typename Run>
int with_dim(const Params& p, Run run) {
    const std::int64_t dim = p.dim_qk > p.dim_v ? p.dim_qk : p.dim_v;
    if (dim <= 32) return run.template operator()<32>();
    if (dim <= 64) return run.template operator()<64>();
    if (dim <= 128) return run.template operator()<128>();
    if (dim <= 256) return run.template operator()<256>();
    return cudaErrorInvalidValue;
}

}  // namespace attest::cuda
