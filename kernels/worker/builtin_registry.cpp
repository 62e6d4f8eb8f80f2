// attest_builtin.so: one list of the kernels that the rooms of kernels/ offer.

#include <vector>

#include "kernels/interface/builtin.hpp"

namespace attest::kernel {

void attest_builtin_kernels(std::span<const BuiltinKernel>& list) {
    static const std::vector<BuiltinKernel> all = [] {
        std::vector<BuiltinKernel> kernels;
        for (const auto& room :
             {cpu::cpu_kernels(), cuda::cuda_kernels(), museum::mutant_kernels()}) {
            kernels.insert(kernels.end(), room.begin(), room.end());
        }
        return kernels;
    }();
    list = all;
}

}  // namespace attest::kernel
