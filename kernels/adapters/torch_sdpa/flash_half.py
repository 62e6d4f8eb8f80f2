"""The flash backend on a CPU in f16 and bf16. On CUDA torch_sdpa.flash has them."""

import torch_sdpa as sdpa
from torch_sdpa import flash

# Its exp was measured 870 ulp off (2.15, AVX-512), where exp(0) is 1 - 5e-5. In the output that is a common factor of a
# row's weights, or lies far below its rounding; backward recomputes the weights, and their gradients show it: 1024 is
# declared. In bf16 the CPU's own instructions (AMX, AVX512_BF16) take subnormal numbers for 0.
ATTEST = sdpa.manifest("flash_half", ["f16", "bf16"], ["gqa", "mask_bool", "mask_additive"],
                       {"weights": "same", "exp_ulp": 1024, "flush_subnormals": True}, gradients=["q", "k", "v"])


def supports(problem):
    # Each query head's dK and dV are rounded, and added up in the format (README.md).
    if problem.want_grad and problem.heads_q != problem.heads_kv:
        return "gradients of groups"
    return flash.supports(problem)


forward = flash.forward
