"""ONNX Runtime's CPU kernel for the ONNX operator Attention, opset 24, with an external KV cache.

    attest check python:onnxruntime_attention_cached:forward --python .venv/bin/python

Opset 24 takes the number of valid keys of each sequence (nonpad_kv_seqlen). With it a causal mask is
aligned to the last valid key (bottom-right), so it is always given here, also where every key is valid.
"""

import numpy as np
import onnxruntime_attention as plain

OPSET = 24

ATTEST = dict(plain.ATTEST, name="onnxruntime_attention_cached",
              features=plain.ATTEST["features"] + ["lens_kv"],
              dialect=dict(plain.ATTEST["dialect"], causal="bottom_right"))


supports = plain.supports


def forward(problem, q, k, v, *, lens_kv=None, **tensors):
    if lens_kv is None:
        lens_kv = np.full(q.shape[0], k.shape[2], np.int32)
    return plain.forward(problem, q, k, v, lens_kv=lens_kv, opset=OPSET, **tensors)
