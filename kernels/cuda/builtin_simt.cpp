// The CUDA kernels among the built-in ones: each twice, fast and checked.

#include <deque>
#include <string>
#include <vector>

#include "kernels/cuda/simt_kernels.hpp"
#include "kernels/interface/builtin.hpp"

namespace attest {

std::span<const BuiltinKernel> simt_kernels() {
    static std::deque<std::string> texts;
    static const std::vector<BuiltinKernel> all = [] {
        using namespace attest_cuda;
        std::vector<BuiltinKernel> kernels;
        for (std::size_t i = 0; i < simt_kernel_count; ++i) {
            const SimtKernel& k = attest_cuda::simt_kernels[i];
            const auto keep = [](std::string_view a, std::string_view b) {
                return std::string_view(texts.emplace_back(std::string(a).append(b)));
            };
            kernels.push_back({k.name, nullptr, keep(k.summary, "; on this CPU"), fast_plugin, i});
            kernels.push_back({keep(k.name, checked_suffix), nullptr,
                               keep("the same, every memory access checked", ""), checked_plugin,
                               i});
        }
        return kernels;
    }();
    return all;
}

}  // namespace attest
