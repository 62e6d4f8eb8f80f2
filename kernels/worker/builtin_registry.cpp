// The kernels this worker has inside: one list of what the rooms of kernels/ offer.

#include <vector>

#include "kernels/interface/builtin.hpp"

namespace attest::kernel {

std::span<const BuiltinKernel> builtin_kernels() {
    static const std::vector<BuiltinKernel> all = [] {
        std::vector<BuiltinKernel> kernels;
        for (const auto& room :
             {cpu::cpu_kernels(), cuda::cuda_kernels(), museum::mutant_kernels()}) {
            kernels.insert(kernels.end(), room.begin(), room.end());
        }
        return kernels;
    }();
    return all;
}

}  // namespace attest::kernel
