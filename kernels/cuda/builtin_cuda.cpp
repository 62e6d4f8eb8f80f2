// The CUDA kernels among the built-in ones: each on a GPU, and twice on this CPU, fast and checked.

#include <deque>
#include <string>
#include <vector>

#include "kernels/cuda/plugin_kernels.hpp"
#include "kernels/interface/builtin.hpp"

namespace attest {
namespace {

using attest_cuda::plugin_kernels;

struct Catalogue {
    std::deque<std::string> texts;  // a deque, so that they stay where they are
    std::vector<BuiltinKernel> kernels;

    std::string_view keep(std::string_view a, std::string_view b, std::string_view c = {}) {
        return texts.emplace_back(std::string(a).append(b).append(c));
    }

    Catalogue() {
        for (std::size_t i = 0; i < attest_cuda::plugin_kernel_count; ++i) {
            const auto& k = plugin_kernels[i];
            kernels.push_back({.id = keep("cuda_", k.name),
                               .summary = k.summary,
                               .library = attest_cuda::gpu_plugin,
                               .index = i,
                               .cases = 0});
            kernels.push_back({.id = keep("simt_", k.name),
                               .summary = keep("cuda_", k.name, " on this CPU"),
                               .library = attest_cuda::fast_plugin,
                               .index = i,
                               .cases = k.cases});
            kernels.push_back({.id = keep("simt_", k.name, attest_cuda::checked_suffix),
                               .summary = "the same, every memory access checked",
                               .library = attest_cuda::checked_plugin,
                               .index = i,
                               .cases = k.checked_cases});
        }
    }
};

}  // namespace

std::span<const BuiltinKernel> cuda_kernels() {
    static const Catalogue all;
    return all.kernels;
}

}  // namespace attest
