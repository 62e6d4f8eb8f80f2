// cpu_decode: split-KV attention over a cache, see decode_body.hpp.

#include "kernels/cpu/decode_entry.hpp"
#include "kernels/cpu/kernels.hpp"

namespace attest::kernel {

const attest_kernel_api decode_api{
    .struct_size = sizeof(attest_kernel_api),
    .abi_version = ATTEST_ABI_VERSION,
    .manifest = R"({
  "name": "cpu_decode", "version": "1",
  "formats": ["f64", "f32", "f16", "bf16"],
  "features": ["causal", "window", "lens_q", "lens_kv", "mask_bool", "mask_additive", "documents",
               "softcap", "sink", "alibi", "rope", "gqa", "dim_v", "scale", "cache", "paged",
               "splits", "layout", "lse", "mixed_formats"],
  "dialect": {"causal": "bottom_right", "empty_row": "zeros", "softcap": "before_bias",
              "window_ends": "inclusive", "lse_base": "e", "nonfinite": "propagate"},
  "numerics": {"accumulate": "f32", "weights": "f64", "output": "same", "exp_ulp": 1, "tile": 64,
               "sum_weights": "unrounded", "deterministic": true, "batch_invariant": true}
})",
    .supports = decode_supports,
    .create = nullptr,
    .destroy = nullptr,
    .workspace = decode_workspace<Defect::none>,
    .forward = split_decode<Defect::none>,
    .backward = nullptr,
    .append = nullptr,
};

}  // namespace attest::kernel
