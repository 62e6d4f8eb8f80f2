// The CUDA kernels among the built-in ones: each on a GPU, and twice on this CPU, fast and checked.

#include <deque>
#include <string>
#include <vector>

#include "kernels/cuda/plugin_kernels.hpp"
#include "kernels/interface/builtin.hpp"

namespace attest::cuda {
namespace {

struct CudaCatalogue {
    std::deque<std::string> texts;  // a deque, so that they stay where they are
    std::vector<kernel::BuiltinKernel> kernels;

    std::string_view keep(std::string_view a, std::string_view b, std::string_view c = {}) {
        return texts.emplace_back(std::string(a).append(b).append(c));
    }

    CudaCatalogue() {
        for (std::size_t i = 0; i < plugin_kernel_count; ++i) {
            const auto& k = plugin_kernels[i];
            kernels.push_back({.id = keep("cuda_", k.name),
                               .summary = k.summary,
                               .library = gpu_plugin,
                               .index = i,
                               .cases = 0});
            kernels.push_back({.id = keep("simt_", k.name),
                               .summary = keep("cuda_", k.name, " on this CPU"),
                               .library = fast_plugin,
                               .index = i,
                               .cases = k.cases});
            kernels.push_back({.id = keep("simt_", k.name, checked_suffix),
                               .summary = "the same, every memory access checked",
                               .library = checked_plugin,
                               .index = i,
                               .cases = k.checked_cases});
        }
    }
};

}  // namespace

std::span<const kernel::BuiltinKernel> cuda_kernels() {
    static const CudaCatalogue all;
    return all.kernels;
}

}  // namespace attest::cuda
