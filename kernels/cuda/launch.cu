#include "kernels/cuda/decode.cuh"
#include "kernels/cuda/flash.cuh"
#include "kernels/cuda/flash_mma.cuh"
#include "kernels/cuda/launch_choice.cuh"
#include "kernels/cuda/naive.cuh"

namespace attest::cuda {
namespace {

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
