// On a CPU: a diagnostic of the runtime is an error of the call, whatever the values are.

#include <array>
#include <utility>

#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/planted_bugs.hpp"
#include "kernels/cuda/plugin_kernels.hpp"
#include "kernels/cuda/world.hpp"
#include "kernels/simt/attest_call.hpp"
#include "kernels/simt/check.hpp"

namespace attest::cuda {
namespace {

template <std::size_t index>
int launch_mutant(ElementFormat, const Params& p, void* stream) {
    return launch_planted(index, p, stream);
}

template <std::size_t index>
int launch_mutant_backward(ElementFormat, const Params& p, void* stream) {
    return launch_planted_backward(index, p, stream);
}

template <std::size_t... index>
constexpr auto all_launches(std::index_sequence<index...>) {
    return std::array<Launch, plugin_kernel_count + sizeof...(index)>{
        launch_naive,     launch_flash,  launch_flash,
        launch_flash_mma, launch_decode, launch_flash, launch_mutant<index>...};
}
template <std::size_t... index>
constexpr auto all_backward(std::index_sequence<index...>) {
    return std::array<Launch, plugin_kernel_count + sizeof...(index)>{
        nullptr,
        launch_flash_backward,
        nullptr,
        nullptr,
        nullptr,
        launch_flash_atomic_backward,
        (planted_gpu_bugs[index].backward() ? launch_mutant_backward<index> : Launch{})...};
}
constexpr auto launches = all_launches(std::make_index_sequence<planted_gpu_bug_count>{});
constexpr auto backward = all_backward(std::make_index_sequence<planted_gpu_bug_count>{});

int run(Launch launch, ElementFormat element, const Params& params, const attest_call& call,
        char* error, std::size_t error_cap) {
    const simt::AttestCall watched(call);
    return watched.finish(launch(element, params, nullptr), error, error_cap);
}

}  // namespace

const World& world() {
    static const World simulated{"simt_",
                                 simt::checker() != nullptr ? std::string(checked_suffix) : "",
                                 R"("memory":"host","simulated":true)", launches, backward, run};
    return simulated;
}

}  // namespace attest::cuda
