"""The flash backend: tiles and a running maximum. FlashAttention-2 on CUDA, where it takes no mask.

On a CPU this is its f64 and f32; f16 and bf16, of another exp, are torch_sdpa.flash_half."""

from functools import partial

import torch_sdpa as sdpa
from torch.nn.attention import SDPBackend

# The weights are rounded to the input's format before they meet V; their sum is of the unrounded ones. On CUDA
# exp is ex2.approx, of 2 ulp. On the CPU it is exp_u20, of 20 ulp by its name: measured are 5 in f32 (2.15, AVX-512).
if sdpa.CUDA:
    ATTEST = sdpa.manifest("flash", ["f16", "bf16"], ["gqa"], {"weights": "same", "exp_ulp": 4, "matrix_unit": True})
else:
    ATTEST = sdpa.manifest("flash", ["f64", "f32"], ["gqa", "mask_bool", "mask_additive"],
                           {"weights": "same", "exp_ulp": 20}, gradients=["q", "k", "v"])

supports = partial(sdpa.supports, SDPBackend.FLASH_ATTENTION)
forward = partial(sdpa.forward, SDPBackend.FLASH_ATTENTION, True)
