#include "kernels/cuda/bias_backward.cuh"
#include "kernels/cuda/flash_backward.cuh"
#include "kernels/cuda/launch_choice.cuh"

namespace attest::cuda {

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

}  // namespace attest::cuda
