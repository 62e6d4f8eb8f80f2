"""The flash backend: tiles and a running maximum. FlashAttention-2 on CUDA, where it takes no mask."""

from functools import partial

import torch_sdpa as sdpa
from torch.nn.attention import SDPBackend

# The weights are rounded to the input's format before they meet V; their sum is of the unrounded ones. On CUDA
# exp is ex2.approx, of 2 ulp. On the CPU it is exp_u20, of 20 ulp by its name: measured are 5 in f32 (2.15, AVX-512),
# but 870 in f16 and bf16, where exp(0) is 1 - 5e-5. In the output that is a common factor of a row's weights,
# or lies far below its rounding; backward recomputes the weights, and their gradients show it: 1024 is declared. In bf16 the CPU's own instructions (AMX, AVX512_BF16) take subnormal
# numbers for 0; in f32 none is lost, but a manifest says it of all formats or of none.
if sdpa.CUDA:
    ATTEST = sdpa.manifest("flash", ["f16", "bf16"], ["gqa"], {"weights": "same", "exp_ulp": 4, "matrix_unit": True})
else:
    ATTEST = sdpa.manifest("flash", ["f64", "f32", "f16", "bf16"], ["gqa", "mask_bool", "mask_additive"],
                           {"weights": "same", "exp_ulp": 1024, "flush_subnormals": True}, gradients=["q", "k", "v"])


def supports(problem):
    # In 16 bits each query head's dK and dV are rounded, and added up in them (README.md).
    if problem.want_grad and problem.heads_q != problem.heads_kv:
        return "gradients of groups"
    return sdpa.supports(SDPBackend.FLASH_ATTENTION, problem)


forward = partial(sdpa.forward, SDPBackend.FLASH_ATTENTION, True)
