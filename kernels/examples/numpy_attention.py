"""Attention in numpy, as attest can judge it: copy this file and change forward().

    attest check python:numpy_attention:forward
"""

import numpy as np
from attest_worker import narrow, widen

ATTEST = {
    "name": "numpy_attention",
    "version": "1",
    "formats": ["f64", "f32", "f16", "bf16"],
    "features": ["causal", "gqa", "dim_v", "scale", "layout", "lse"],
    # Sums run in f32 (f64 for f64 inputs), the weights P are not rounded before they meet V, and
    # numpy states 2.52 ulp for its f32 exp.
    "numerics": {"weights": "f32", "exp_ulp": 3},
}


def forward(problem, q, k, v, o, **_):
    real = np.float64 if q.dtype == np.float64 else np.float32
    q, k, v = (widen(x).astype(real) for x in (q, k, v))  # bfloat16 arrives as uint16
    group = problem.heads_q // problem.heads_kv
    k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    s = np.einsum("bhid,bhjd->bhij", q, k) * real(problem.scale)
    if problem.causal:  # bottom-right: the last query sees every key
        i, j = np.ogrid[: problem.len_q, : problem.len_kv]
        s = np.where(j > i + problem.len_kv - problem.len_q, -np.inf, s)
    m = s.max(axis=-1, keepdims=True, initial=-np.inf)
    p = np.exp(s - np.where(m == -np.inf, 0, m))  # a row that sees no key: all zeros, LSE -inf
    total = p.sum(axis=-1, keepdims=True)
    result = np.einsum("bhij,bhjd->bhid", p, v) / np.where(total == 0, 1, total)
    with np.errstate(divide="ignore"):
        lse = (m + np.log(total))[..., 0]
    return narrow(result) if o.dtype == np.uint16 else result.astype(o.dtype), lse.astype(real)
