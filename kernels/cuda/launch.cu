#include "kernels/cuda/launch.hpp"

#include "kernels/cuda/bias_backward.cuh"
#include "kernels/cuda/decode.cuh"
#include "kernels/cuda/flash.cuh"
#include "kernels/cuda/flash_backward.cuh"
#include "kernels/cuda/flash_mma.cuh"
#include "kernels/cuda/naive.cuh"

namespace attest::cuda {
namespace {

dim3 rows_grid(const Params& p, std::int64_t rows) {
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

template <typename T>
int flash_mma(const Params& p, cudaStream_t stream) {
    return with_dim(p, [&]<int DIM>() -> int {
        return simt::launch(flash_mma_kernel<T, DIM>, rows_grid(p, mma_rows),
                            dim3(128), MmaTiles<DIM>::bytes(), stream, p);
    });
}

}  // namespace

int launch_naive(ElementFormat element, const Params& p, void* stream) {
    if (nothing_to_do(p)) return cudaSuccess;
    return with_element(element, [&]<typename T>() -> int {
        return simt::launch(naive_kernel<T>, rows_grid(p, 32), dim3(32), 0,
                            static_cast<cudaStream_t>(stream), p);
    });
}

int launch_flash(ElementFormat element, const Params& p, void* stream) {
    if (nothing_to_do(p)) return cudaSuccess;
    return with_element(element, [&]<typename T>() -> int {
        return with_dim(p, [&]<int DIM>() -> int {
            return simt::launch(flash_kernel<T, DIM>, rows_grid(p, 16), dim3(128),
                                flash_shared_bytes<DIM>(), static_cast<cudaStream_t>(stream), p);
        });
    });
}

int launch_flash_backward(ElementFormat element, const Params& p, void* stream) {
    return with_element(element, [&]<typename T>() -> int {
        return with_dim(p, [&]<int DIM>() -> int {
            const auto on = static_cast<cudaStream_t>(stream);
            int code = cudaSuccess;
            if (p.d_q.data != nullptr && !nothing_to_do(p))
                code = simt::launch(flash_d_query_kernel<T, DIM>, rows_grid(p, back_rows),
                                    dim3(128), BackTiles<DIM>::bytes(), on, p);
            if (code == cudaSuccess) code = launch_d_key<T, DIM, false>(p, on);
            return code == cudaSuccess ? launch_bias_backward<T, DIM>(p, on) : code;
        });
    });
}

int launch_flash_atomic_backward(ElementFormat element, const Params& p, void* stream) {
    return with_element(element, [&]<typename T>() -> int {
        return with_dim(p, [&]<int DIM>() -> int {
            const auto on = static_cast<cudaStream_t>(stream);
            const int code = launch_d_key_atomic<T, DIM>(p, on);
            return code == cudaSuccess ? launch_bias_backward<T, DIM>(p, on) : code;
        });
    });
}

int launch_flash_mma(ElementFormat element, const Params& p, void* stream) {
    if (nothing_to_do(p)) return cudaSuccess;
    if (element == ElementFormat::f16)
        return flash_mma<__half>(p, static_cast<cudaStream_t>(stream));
    if (element == ElementFormat::bf16)
        return flash_mma<__nv_bfloat16>(p, static_cast<cudaStream_t>(stream));
    return cudaErrorInvalidValue;
}

int launch_decode(ElementFormat element, const Params& p, void* stream) {
    if (nothing_to_do(p)) return cudaSuccess;
    const std::int64_t rows = p.batch * p.heads_q * p.len_q;
    const cudaError_t cleared =
        cudaMemsetAsync(p.arrivals, 0, sizeof(std::uint32_t) * static_cast<std::size_t>(rows),
                        static_cast<cudaStream_t>(stream));
    if (cleared != cudaSuccess) return cleared;
    const dim3 grid(static_cast<unsigned>(p.splits), static_cast<unsigned>(p.heads_q),
                    static_cast<unsigned>(p.batch * p.len_q));
    return with_element(element, [&]<typename T>() -> int {
        return simt::launch(decode_kernel<T>, grid, dim3(128), 0, static_cast<cudaStream_t>(stream),
                            p);
    });
}

}  // namespace attest::cuda
