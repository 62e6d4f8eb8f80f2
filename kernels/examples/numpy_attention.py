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
    result = np.zeros(o.shape, real)  # a query that sees no key: zeros, and an LSE of -inf
    lse = np.full(o.shape[:3], -np.inf, real)
    for i in range(problem.len_q):
        # Bottom-right: the last query sees every key. What is hidden is not even multiplied by 0,
        # since 0 times NaN is NaN.
        seen = problem.len_kv + (i + 1 - problem.len_q if problem.causal else 0)
        if seen <= 0:
            continue
        s = np.einsum("bhd,bhjd->bhj", q[:, :, i], k[:, :, :seen]) * real(problem.scale)
        m = s.max(axis=-1, keepdims=True)
        p = np.exp(s - m)
        total = p.sum(axis=-1, keepdims=True)
        result[:, :, i] = np.einsum("bhj,bhjd->bhd", p, v[:, :, :seen]) / total
        lse[:, :, i] = (m + np.log(total))[..., 0]
    return narrow(result) if o.dtype == np.uint16 else result.astype(o.dtype), lse
