// The kernels of this folder as a plug-in, in either world: attest_cuda.so on a GPU, attest_simt.so
// and attest_simt_checked.so on a CPU.

#include <array>
#include <cstdio>
#include <string>
#include <utility>

#include "kernels/cuda/planted_bugs.hpp"
#include "kernels/cuda/plugin_kernels.hpp"
#include "kernels/cuda/read_params.hpp"
#include "kernels/cuda/world.hpp"

namespace attest::cuda {
namespace {

constexpr std::size_t count = plugin_kernel_count + planted_gpu_bug_count;

/// The planted bug with this number, or none.
constexpr const PlantedGpuBug* planted(std::size_t index) {
    return index < plugin_kernel_count ? nullptr : &planted_gpu_bugs[index - plugin_kernel_count];
}
constexpr PluginKernel kernel(std::size_t index) {
    if (planted(index) == nullptr) return plugin_kernels[index];
    const bool backward = planted(index)->backward();
    return {.name = planted(index)->about.id,
            .summary = "",
            .gradients = backward ? CudaGradients::atomic : CudaGradients::none};
}

template <std::size_t index>
int supports(void*, const attest_problem* problem, char* reason, std::size_t reason_cap) {
    const PluginKernel k = kernel(index);
    const bool backward = k.gradients != CudaGradients::none;
    return answer({k.f32, k.rope, k.splits, !k.top_left, backward}, problem, reason, reason_cap);
}

template <std::size_t index>
int forward(void*, const attest_call* call, char* error, std::size_t error_cap) {
    Params params;
    ElementFormat element = ElementFormat::f32;
    if (!read_params(call, params, element)) {
        std::snprintf(error, error_cap, "a tensor this problem needs is absent");
        return 1;
    }
    params.top_left = kernel(index).top_left;
    if (kernel(index).splits) place_workspace(call, params);
    return world().run(world().launches[index], element, params, *call, error, error_cap);
}

template <std::size_t index>
int backward(void*, const attest_call* call, char* error, std::size_t error_cap) {
    Params params;
    ElementFormat element = ElementFormat::f32;
    if (!read_params(call, params, element) || params.lse.data == nullptr ||
        params.d_o.data == nullptr) {
        std::snprintf(error, error_cap, "a tensor this problem needs is absent");
        return 1;
    }
    params.d_q_sum = static_cast<float*>(call->workspace);
    return world().run(world().backward[index], element, params, *call, error, error_cap);
}

template <std::size_t index>
std::size_t workspace(void*, const attest_problem* problem) {
    if (kernel(index).splits) return decode_workspace_bytes(*problem);
    return kernel(index).gradients == CudaGradients::atomic ? d_query_sum_bytes(*problem) : 0;
}

/// Gradients are summed in f32, as P and dS are.
std::string gradients_of(const PluginKernel& k, bool claims_order) {
    if (k.gradients == CudaGradients::none) return "";
    return std::string(R"(,"gradient_weights":"f32","gradient_scores":"f32")") +
           (claims_order ? R"(,"deterministic_backward":true)" : "");
}

std::string manifest(std::size_t index) {
    const PluginKernel k = kernel(index);
    const PlantedGpuBug* const bug = planted(index);
    const std::string name = bug != nullptr ? "mutant:" + std::string(k.name)
                                            : world().prefix + std::string(k.name) + world().suffix;
    const char* formats = bug == nullptr ? (k.f32 ? R"("f32","f16","bf16")" : R"("f16","bf16")")
                          : bug->mma()   ? R"("bf16")"
                                         : R"("f32")";
    const std::string dims = bug != nullptr ? R"({"most":64})" : R"({"most":256})";
    const bool mma = bug != nullptr ? bug->mma() : k.mma;
    const bool whole = bug == nullptr && k.gradients != CudaGradients::none;
    return R"({"name":")" + name + R"(","version":"1","formats":[)" + formats + "]," +
           world().manifest + R"(,"takes":{"dim_qk":)" + dims + R"(,"dim_v":)" + dims +
           R"(,"mask_shared":["batch","heads","queries","keys"]})" +
           R"(,"numerics":{"deterministic":true)" + (mma ? R"(,"matrix_unit":true)" : "") +
           gradients_of(
               k, bug != nullptr ? bug->claims_order : k.gradients == CudaGradients::ordered) +
           R"(},"dialect":)" + (k.top_left ? R"({"causal":"top_left"})" : "{}") +
           R"(,"features":["causal","window","lens_q","lens_kv","mask_bool","mask_additive",)"
           R"("softcap","sink","alibi","gqa","dim_v","scale","negative_scale","layout","lse")" +
           (k.top_left ? "" : R"(,"cache","paged")") + (k.rope ? R"(,"rope")" : "") +
           (k.splits ? R"(,"splits")" : "") + (whole ? R"(,"d_lse")" : "") + "]" +
           (whole ? R"(,"gradients":["q","k","v","mask","sinks","slopes"]})"
            : k.gradients != CudaGradients::none ? R"(,"gradients":["q","k","v"]})"
                                                 : "}");
}

struct Plugin {
    std::array<std::string, count> manifests;
    std::array<attest_kernel_api, count> apis{};

    template <std::size_t... index>
    explicit Plugin(std::index_sequence<index...>) : manifests{manifest(index)...} {
        ((apis[index] = {.struct_size = sizeof(attest_kernel_api),
                         .abi_version = ATTEST_ABI_VERSION,
                         .manifest = manifests[index].c_str(),
                         .supports = supports<index>,
                         .create = nullptr,
                         .destroy = nullptr,
                         .workspace = workspace<index>,
                         .forward = forward<index>,
                         .backward = kernel(index).gradients != CudaGradients::none
                                         ? backward<index>
                                         : nullptr,
                         .append = nullptr}),
         ...);
    }
};

}  // namespace
}  // namespace attest::cuda

const attest_kernel_api* attest_get_kernel(uint32_t host_abi, size_t index) {
    using namespace attest::cuda;
    static const Plugin plugin{std::make_index_sequence<count>{}};
    const bool offered = host_abi == ATTEST_ABI_VERSION && index < world().launches.size();
    return offered ? &plugin.apis[index] : nullptr;
}
