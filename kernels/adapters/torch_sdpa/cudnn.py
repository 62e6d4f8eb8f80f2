"""The cuDNN backend, CUDA alone. It has not been judged yet: none was at hand."""

from functools import partial

import torch_sdpa as sdpa
from torch.nn.attention import SDPBackend

if not sdpa.CUDA:
    raise RuntimeError("PyTorch has the cuDNN backend on CUDA alone, and there is no CUDA device")

# What it makes of a row that sees no key is not promised, so it is not judged.
ATTEST = sdpa.manifest("cudnn", ["f16", "bf16"], ["gqa", "dim_v", "mask_bool", "mask_additive"],
                       {"weights": "same", "exp_ulp": 4, "matrix_unit": True}, empty_row="refuse")
supports = partial(sdpa.supports, SDPBackend.CUDNN_ATTENTION)
forward = partial(sdpa.forward, SDPBackend.CUDNN_ATTENTION, True)
