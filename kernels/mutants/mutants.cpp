// The register of the planted bugs: each stands behind the C ABI with the manifest of the correct
// kernel it was made from, under its own name.

#include <algorithm>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cuda/planted_bugs.hpp"
#include "kernels/cuda/plugin_kernels.hpp"
#include "kernels/interface/builtin.hpp"
#include "kernels/mutants/planted.hpp"

namespace attest::museum {

std::vector<PlantedBug> planted_bugs();  // of every file of this folder

const attest_kernel_api& correct_kernel(std::string_view id) {
    static const auto kernels = cpu::cpu_kernels();
    return *std::find_if(kernels.begin(), kernels.end(), [id](const kernel::BuiltinKernel& kernel) {
                return kernel.id == id;
            })->api;
}

namespace {

/// Enough for cpu_flash's forward and for cpu_naive's backward.
std::size_t larger_workspace(void*, const attest_problem* problem) {
    return std::max(correct_kernel("cpu_flash").workspace(nullptr, problem),
                    correct_kernel("cpu_naive").workspace(nullptr, problem));
}

struct Register {
    std::deque<std::string> texts;  // deques, so that what is pointed at stays where it is
    std::deque<attest_kernel_api> apis;
    std::vector<PlantedBug> planted = planted_bugs();
    std::vector<kernel::BuiltinKernel> kernels;

    kernel::BuiltinKernel& add(const kernel::Mutant& about) {
        const std::string& id = texts.emplace_back("mutant:" + std::string(about.id));
        return kernels.emplace_back(
            kernel::BuiltinKernel{.id = id, .summary = about.change, .cases = 0, .mutant = &about});
    }

    /// Steps of backward are those of f32; a call is changed before, in every format.
    static bool in_f32_alone(const PlantedBug& bug) {
        if (std::holds_alternative<RoundedBackward>(bug.change)) return true;
        const auto* back = std::get_if<cpu::BackwardSteps<float>>(&bug.change);
        return back != nullptr && back->call == cpu::plain::call_backward;
    }

    static std::string_view changed_kernel(const PlantedBug& bug) {
        if (std::holds_alternative<cpu::DecodeSteps>(bug.change)) return "cpu_decode";
        if (std::holds_alternative<cpu::BackwardSteps<float>>(bug.change)) return "cpu_naive";
        return std::holds_alternative<RoundedBackward>(bug.change) ? "cpu_flash"
                                                                   : "cpu_flash_plain";
    }

    void add_bug(PlantedBug& bug) {
        bug.about.kernel = changed_kernel(bug);
        kernel::BuiltinKernel& added = add(bug.about);
        attest_kernel_api& api = apis.emplace_back(correct_kernel(bug.about.kernel));
        std::string& manifest = texts.emplace_back(api.manifest);
        const std::string original = '"' + std::string(bug.about.kernel) + '"';
        manifest.replace(manifest.find(original), original.size(),
                         '"' + std::string(added.id) + '"');
        if (constexpr std::string_view f64 = "\"f64\", "; in_f32_alone(bug))
            manifest.erase(manifest.find(f64), f64.size());
        constexpr std::string_view numerics = "\"numerics\": {";
        manifest.insert(manifest.find(numerics) + numerics.size(), bug.declares);
        api.manifest = manifest.c_str();
        added.api = &api;
        if (std::holds_alternative<RoundedBackward>(bug.change)) {
            api.backward = correct_kernel("cpu_naive").backward;
            api.workspace = larger_workspace;
        }
        if (const auto* whole = std::get_if<WholeForward>(&bug.change))
            api.forward = *whole;
        else
            added.state = std::visit([](const auto& c) -> const void* { return &c; }, bug.change);
    }

    Register() {
        for (PlantedBug& bug : planted) add_bug(bug);
        // They live in the plug-ins, behind the correct kernels.
        std::size_t index = cuda::plugin_kernel_count;
        for (const cuda::PlantedGpuBug& bug : cuda::planted_gpu_bugs) {
            kernel::BuiltinKernel& added = add(bug.about);
            added.library = bug.checked() ? cuda::checked_plugin : cuda::fast_plugin;
            added.index = index++;
        }
    }
};

}  // namespace

std::span<const kernel::BuiltinKernel> mutant_kernels() {
    static const Register all;
    return all.kernels;
}

}  // namespace attest::museum
