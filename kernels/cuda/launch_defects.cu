// The planted bugs, instantiated small: one element type and one head dimension each.
#include <utility>

#include "kernels/cuda/flash.cuh"
#include "kernels/cuda/flash_mma.cuh"
#include "kernels/cuda/launch.hpp"

namespace attest_cuda {
namespace {

constexpr int dim = 64;

dim3 grid_of(const Params& p, std::int64_t rows) {
    return dim3(static_cast<unsigned>((p.len_q + rows - 1) / rows),
                static_cast<unsigned>(p.heads_q), static_cast<unsigned>(p.batch));
}

template <int... index>
int flash_with(int wanted, const Params& p, cudaStream_t stream,
               std::integer_sequence<int, index...>) {
    int code = cudaErrorInvalidValue;
    ((index == wanted ? void(code = simt::launch(
                                 flash_kernel<float, dim, static_cast<Defect>(index)>,
                                 grid_of(p, 16), dim3(128), flash_shared_bytes<dim>(), stream, p))
                      : void()),
     ...);
    return code;
}

template <int... index>
int mma_with(int wanted, const Params& p, cudaStream_t stream,
             std::integer_sequence<int, index...>) {
    int code = cudaErrorInvalidValue;
    ((index == wanted
          ? void(code = simt::launch(
                     flash_mma_kernel<__nv_bfloat16, dim, static_cast<Defect>(index)>,
                     grid_of(p, mma_rows), dim3(128), MmaTiles<dim>::bytes(), stream, p))
          : void()),
     ...);
    return code;
}

using AllDefects = std::make_integer_sequence<int, defect_count>;

}  // namespace

int launch_flash_with(Defect defect, const Params& p, void* stream) {
    if (nothing_to_do(p)) return cudaSuccess;
    return flash_with(static_cast<int>(defect), p, static_cast<cudaStream_t>(stream), AllDefects{});
}

int launch_flash_mma_with(Defect defect, const Params& p, void* stream) {
    if (nothing_to_do(p)) return cudaSuccess;
    return mma_with(static_cast<int>(defect), p, static_cast<cudaStream_t>(stream), AllDefects{});
}

}  // namespace attest_cuda
