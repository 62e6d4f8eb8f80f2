"""The math backend: two matrix products around a softmax, in f32 for f16 and bf16."""

from functools import partial

import torch_sdpa as sdpa
from torch.nn.attention import SDPBackend

ATTEST = sdpa.manifest("math", ["f64", "f32", "f16", "bf16"], ["gqa", "dim_v", "mask_bool", "mask_additive"],
                       {"weights": "f32", "exp_ulp": 2}, gradients=["q", "k", "v", "mask"])
supports = partial(sdpa.supports, SDPBackend.MATH)
forward = partial(sdpa.forward, SDPBackend.MATH, False)
