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
            kernels.push_back(
                {keep("cuda_", k.name), nullptr, k.summary, attest_cuda::gpu_plugin, i});
            kernels.push_back({keep("simt_", k.name), nullptr,
                               keep("cuda_", k.name, " on this CPU"), attest_cuda::fast_plugin, i});
            kernels.push_back({keep("simt_", k.name, attest_cuda::checked_suffix), nullptr,
                               "the same, every memory access checked", attest_cuda::checked_plugin,
                               i});
        }
    }
};

}  // namespace

std::span<const BuiltinKernel> cuda_kernels() {
    static const Catalogue all;
    return all.kernels;
}

}  // namespace attest
