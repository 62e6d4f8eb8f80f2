// The register of the planted bugs: each stands behind the border with the manifest of the correct
// kernel it was made from, under its own name.

#include <deque>
#include <string>
#include <string_view>

#include "kernels/cpu/kernels.hpp"
#include "kernels/cuda/plugin_kernels.hpp"
#include "kernels/interface/builtin.hpp"
#include "kernels/mutants/museum_rooms.hpp"

namespace attest {
namespace {

struct Register {
    std::deque<std::string> manifests, ids;  // deques, so that texts and apis stay where they are
    std::deque<attest_kernel_api> apis;
    std::vector<BuiltinKernel> kernels;

    void add(const kernel::MutantEntry& entry, const attest_kernel_api& made_from,
             std::string_view original) {
        std::string manifest = made_from.manifest;
        const std::string quoted = '"' + std::string(original) + '"';
        manifest.replace(manifest.find(quoted), quoted.size(), '"' + std::string(entry.id) + '"');
        manifests.push_back(std::move(manifest));
        apis.push_back(made_from);
        apis.back().manifest = manifests.back().c_str();
        apis.back().forward = entry.forward;
        apis.back().workspace = entry.workspace;
        kernels.push_back({entry.id, &apis.back(), change_of(entry.id)});
    }

    /// They live in the plug-ins, behind the correct kernels.
    void add_gpu_mutants() {
        std::size_t index = attest_cuda::plugin_kernel_count;
        for (const attest_cuda::PlantedBug& m : attest_cuda::planted_bugs) {
            const std::string_view id = ids.emplace_back("mutant:" + std::string(m.id));
            kernels.push_back({id, nullptr, change_of(id),
                               m.checked ? attest_cuda::checked_plugin : attest_cuda::fast_plugin,
                               index++});
        }
    }

    static std::string_view change_of(std::string_view id) {
        for (const Mutant& mutant : museum()) {
            if (id == "mutant:" + std::string(mutant.id)) return mutant.change;
        }
        return {};
    }

    Register() {
        for (const auto& room :
             {kernel::masking_entries(), kernel::softmax_entries(), kernel::addressing_entries()}) {
            for (const auto& entry : room) add(entry, kernel::flash_plain_api, "cpu_flash_plain");
        }
        for (const auto& entry : kernel::decode_entries()) {
            add(entry, kernel::decode_api, "cpu_decode");
        }
        add_gpu_mutants();
    }
};

}  // namespace

std::span<const BuiltinKernel> mutant_kernels() {
    static const Register all;
    return all.kernels;
}

}  // namespace attest
