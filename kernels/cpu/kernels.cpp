// The register of the CPU kernels.

#include "kernels/cpu/kernels.hpp"

#include <array>

#include "kernels/interface/builtin.hpp"

namespace attest {

std::span<const BuiltinKernel> cpu_kernels() {
    static const std::array<BuiltinKernel, 4> all{{
        {"cpu_naive", &kernel::naive_api, "the definition, one row at a time; every feature"},
        {"cpu_flash", &kernel::flash_api, "tiled, online softmax, SIMD; every feature but splits"},
        {"cpu_flash_plain", &kernel::flash_plain_api, "tiled, without SIMD: the mutants' own body"},
        {"cpu_decode", &kernel::decode_api, "split-KV with a merge, contiguous or paged cache"},
    }};
    return all;
}

}  // namespace attest
