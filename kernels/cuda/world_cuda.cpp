// On a GPU: the worker has laid the tensors into device memory and waits for the stream itself.

#include <array>
#include <cstdio>

#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/plugin_kernels.hpp"
#include "kernels/cuda/world.hpp"

namespace attest::cuda {
namespace {

constexpr std::array<Launch, plugin_kernel_count> launches{
    launch_naive, launch_flash, launch_flash, launch_flash_mma, launch_decode, launch_flash};
constexpr std::array<Launch, plugin_kernel_count> backward{
    nullptr, launch_flash_backward, nullptr, nullptr, nullptr, launch_flash_atomic_backward};

int run(Launch launch, ElementFormat element, const Params& params, const attest_call& call,
        char* error, std::size_t error_cap) {
    const int code = launch(element, params, call.stream);
    if (code != 0) std::snprintf(error, error_cap, "the launch failed with CUDA error %d", code);
    return code;
}

}  // namespace

const World& world() {
    static const World device{"cuda_", "", R"("memory":"cuda")", launches, backward, run};
    return device;
}

}  // namespace attest::cuda
