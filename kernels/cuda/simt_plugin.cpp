// The kernels of this folder on a CPU, as a plug-in: attest_simt.so runs them fast,
// attest_simt_checked.so with every memory access checked. A diagnostic of the runtime is an error
// of the call, whatever the values are.

#include <array>
#include <cstdio>
#include <string>
#include <utility>

#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/read_call.hpp"
#include "kernels/cuda/simt_kernels.hpp"
#include "kernels/simt/attest_call.hpp"
#include "kernels/simt/check.hpp"

namespace attest_cuda {
namespace {

using Launch = int (*)(Element, const Params&, void*);

constexpr Launch launches[] = {launch_naive, launch_flash, launch_flash, launch_flash_mma,
                               launch_decode};
static_assert(sizeof launches / sizeof launches[0] == simt_kernel_count);
constexpr std::size_t count = simt_kernel_count + simt_mutant_count;

constexpr bool is_mutant(std::size_t index) {
    return index >= simt_kernel_count;
}
/// The mutant's own row, or none.
constexpr const SimtMutant* mutant(std::size_t index) {
    return is_mutant(index) ? &simt_mutants[index - simt_kernel_count] : nullptr;
}
constexpr SimtKernel kernel(std::size_t index) {
    if (!is_mutant(index)) return simt_kernels[index];
    return {.name = mutant(index)->id, .summary = ""};
}

template <std::size_t index>
int launch(Element element, const Params& p) {
    if constexpr (!is_mutant(index)) {
        return launches[index](element, p, nullptr);
    } else {
        constexpr SimtMutant m = *mutant(index);
        return m.mma ? launch_flash_mma_with(m.defect, p, nullptr)
                     : launch_flash_with(m.defect, p, nullptr);
    }
}

template <std::size_t index>
int supports(void*, const attest_problem* problem, char* reason, std::size_t reason_cap) {
    const SimtKernel k = kernel(index);
    return answer({k.f32, k.rope, k.splits, !k.top_left}, problem, reason, reason_cap);
}

template <std::size_t index>
int forward(void*, const attest_call* call, char* error, std::size_t error_cap) {
    Params params;
    Element element = Element::f32;
    if (!read_call(call, params, element)) {
        std::snprintf(error, error_cap, "a tensor this problem needs is absent");
        return 1;
    }
    params.top_left = kernel(index).top_left;
    if (kernel(index).splits) place_workspace(call, params);
    const simt::AttestCall watched(*call);
    return watched.finish(launch<index>(element, params), error, error_cap);
}

std::size_t decode_workspace(void*, const attest_problem* problem) {
    return decode_workspace_bytes(*problem);
}

std::string manifest(std::size_t index) {
    const SimtKernel k = kernel(index);
    const SimtMutant* const m = mutant(index);
    std::string name(k.name);
    if (m != nullptr)
        name.insert(0, "mutant:");
    else if (simt::checker() != nullptr)
        name += checked_suffix;
    const char* formats = m == nullptr ? (k.f32 ? R"("f32","f16","bf16")" : R"("f16","bf16")")
                          : m->mma     ? R"("bf16")"
                                       : R"("f32")";
    return R"({"name":")" + name + R"(","version":"1","formats":[)" + formats +
           R"(],"memory":"host","simulated":true,"limits":{"dim_max":)" +
           (m != nullptr ? "64" : "256") + R"(},"numerics":{"deterministic":true},"dialect":)" +
           (k.top_left ? R"({"causal":"top_left"})" : "{}") +
           R"(,"features":["causal","window","lens_q","lens_kv","mask_bool","mask_additive",)"
           R"("softcap","sink","alibi","gqa","dim_v","scale","layout","lse")" +
           (k.top_left ? "" : R"(,"cache","paged")") + (k.rope ? R"(,"rope")" : "") +
           (k.splits ? R"(,"splits")" : "") + "]}";
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
                         .workspace = kernel(index).splits ? decode_workspace : nullptr,
                         .forward = forward<index>,
                         .backward = nullptr,
                         .append = nullptr}),
         ...);
    }
};

}  // namespace
}  // namespace attest_cuda

const attest_kernel_api* attest_get_kernel(uint32_t host_abi, size_t index) {
    using namespace attest_cuda;
    static const Plugin plugin{std::make_index_sequence<count>{}};
    return host_abi == ATTEST_ABI_VERSION && index < count ? &plugin.apis[index] : nullptr;
}
