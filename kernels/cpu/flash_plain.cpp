// cpu_flash_plain: the body the planted bugs share, without a bug. Where it holds and a mutant is
// caught, it is the mutation that was caught.

#include "kernels/cpu/flash_body.hpp"
#include "kernels/cpu/kernels.hpp"

namespace attest::kernel {

const attest_kernel_api flash_plain_api{
    .struct_size = sizeof(attest_kernel_api),
    .abi_version = ATTEST_ABI_VERSION,
    .manifest = R"({
  "name": "cpu_flash_plain", "version": "1",
  "formats": ["f32", "f16", "bf16"],
  "features": ["causal", "window", "lens_q", "lens_kv", "mask_bool", "mask_additive", "softcap",
               "sink", "alibi", "gqa", "dim_v", "scale", "cache", "layout", "lse",
               "mixed_formats"],
  "dialect": {"causal": "bottom_right", "empty_row": "zeros", "softcap": "before_bias",
              "window_ends": "inclusive", "lse_base": "e", "nonfinite": "propagate"},
  "numerics": {"accumulate": "f32", "weights": "same", "output": "same", "exp_ulp": 1, "tile": 16,
               "sum_weights": "unrounded", "deterministic": true, "batch_invariant": true}
})",
    .supports = plain_supports,
    .create = nullptr,
    .destroy = nullptr,
    .workspace = plain_workspace,
    .forward = plain_flash<Defect::none>,
    .backward = nullptr,
    .append = nullptr,
};

}  // namespace attest::kernel
