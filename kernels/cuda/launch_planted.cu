// The planted bugs, instantiated small: one element type and one head dimension each.
#include <cstddef>
#include <utility>

#include "kernels/cuda/flash.cuh"
#include "kernels/cuda/flash_backward.cuh"
#include "kernels/cuda/flash_mma.cuh"
#include "kernels/cuda/launch_choice.cuh"
#include "kernels/cuda/planted_bugs.hpp"

namespace attest::cuda {
namespace {

constexpr int dim = 64;

template <std::size_t number>
int launch(const Params& p, cudaStream_t stream) {
    constexpr unsigned care = coded(planted_gpu_bugs[number].care);
    if constexpr (planted_gpu_bugs[number].mma()) {
        return simt::launch(flash_mma_kernel<__nv_bfloat16, dim, care>, rows_grid(p, mma_rows),
                            dim3(128), MmaTiles<dim>::bytes(), stream, p);
    } else {
        // A bug of backward has the correct forward.
        constexpr unsigned taken = planted_gpu_bugs[number].backward() ? 0 : care;
        return simt::launch(flash_kernel<float, dim, taken>, rows_grid(p, 16), dim3(128),
                            flash_shared_bytes<dim>(), stream, p);
    }
}

template <std::size_t number>
int launch_backward(const Params& p, cudaStream_t stream) {
    if constexpr (planted_gpu_bugs[number].backward())
        return launch_d_key_atomic<float, dim, coded(planted_gpu_bugs[number].care)>(p, stream);
    return cudaErrorInvalidValue;
}

template <std::size_t... number>
int launch_any(std::size_t wanted, bool backward, const Params& p, cudaStream_t stream,
               std::index_sequence<number...>) {
    int code = cudaErrorInvalidValue;
    ((number == wanted ? void(code = backward ? launch_backward<number>(p, stream)
                                              : launch<number>(p, stream))
                       : void()),
     ...);
    return code;
}

}  // namespace

int launch_planted(std::size_t number, const Params& p, void* stream) {
    if (nothing_to_do(p)) return cudaSuccess;
    return launch_any(number, false, p, static_cast<cudaStream_t>(stream),
                      std::make_index_sequence<planted_gpu_bug_count>{});
}

int launch_planted_backward(std::size_t number, const Params& p, void* stream) {
    return launch_any(number, true, p, static_cast<cudaStream_t>(stream),
                      std::make_index_sequence<planted_gpu_bug_count>{});
}

}  // namespace attest::cuda
