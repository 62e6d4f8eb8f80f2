"""Attention in Triton, as attest can judge it: copy this file and change the kernel.

    attest check python:triton_attention:forward --python .venv/bin/python

It runs on the CUDA device where there is one, else in Triton's interpreter, on a CPU: far slower, and with no bfloat16.
"""

import os

import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported

import triton
import triton.language as tl

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

ATTEST = {
    "name": "triton_attention",
    "version": "1",
    "formats": ["f32", "f16"],
    "features": ["causal", "gqa", "dim_v", "scale", "layout", "lse"],
    "takes": {"batch": {"least": 1}, "len_q": {"least": 1}, "len_kv": {"least": 1}},
    # Sums and weights are f32. What is hidden is multiplied by a weight of 0, also where it is NaN.
    "numerics": {"accumulate": "f32", "weights": "f32", "exp_ulp": 4, "deterministic": True},
    "dialect": {"nonfinite": "unspecified"},
}


@triton.jit
def attend(q, k, v, o, lse, scale, len_q, len_kv, dim, dim_v, heads, group, q_b, q_h, q_t, q_d, k_b, k_h, k_t, k_d,
           v_b, v_h, v_t, v_d, CAUSAL: tl.constexpr, D: tl.constexpr, DV: tl.constexpr, BLOCK: tl.constexpr,
           KEYS: tl.constexpr):
    """A block of queries of one head, tile by tile of keys; o and lse are without gaps."""
    b = tl.program_id(1) // heads
    h = tl.program_id(1) % heads
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c, cv, key = tl.arange(0, D), tl.arange(0, DV), tl.arange(0, KEYS)
    q_rows = q + b.to(tl.int64) * q_b + h * q_h + row[:, None].to(tl.int64) * q_t + c[None, :] * q_d
    mine = tl.load(q_rows, mask=(row[:, None] < len_q) & (c[None, :] < dim), other=0.0).to(tl.float32)
    highest = tl.full([BLOCK], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    sums = tl.zeros([BLOCK, DV], tl.float32)
    for first in range(0, len_kv, KEYS):
        j = first + key
        k_columns = k + b.to(tl.int64) * k_b + (h // group) * k_h + j[None, :].to(tl.int64) * k_t + c[:, None] * k_d
        keys = tl.load(k_columns, mask=(j[None, :] < len_kv) & (c[:, None] < dim), other=0.0).to(tl.float32)
        s = tl.dot(mine, keys, input_precision="ieee") * scale
        seen = (j[None, :] < len_kv) & (row[:, None] < len_q)
        if CAUSAL:  # bottom-right: the last query sees every key
            seen = seen & (j[None, :] <= row[:, None] + len_kv - len_q)
        s = tl.where(seen, s, -float("inf"))
        higher = tl.maximum(highest, tl.max(s, 1))
        reached = tl.where(higher == -float("inf"), 0.0, higher)
        p = tl.exp(s - reached[:, None])
        old = tl.exp(highest - reached)
        v_rows = v + b.to(tl.int64) * v_b + (h // group) * v_h + j[:, None].to(tl.int64) * v_t + cv[None, :] * v_d
        values = tl.load(v_rows, mask=(j[:, None] < len_kv) & (cv[None, :] < dim_v), other=0.0).to(tl.float32)
        sums = sums * old[:, None] + tl.dot(p, values, input_precision="ieee")
        total = total * old + tl.sum(p, 1)
        highest = higher
    out = tl.where(total[:, None] > 0, sums / tl.where(total > 0, total, 1.0)[:, None], 0.0)
    flat = tl.program_id(1).to(tl.int64) * len_q + row
    tl.store(o + flat[:, None] * dim_v + cv[None, :], out.to(o.dtype.element_ty),
             mask=(row[:, None] < len_q) & (cv[None, :] < dim_v))
    tl.store(lse + flat, highest + tl.log(total), mask=row < len_q)


def forward(problem, q, k, v, o, **_):
    q, k, v = (torch.from_numpy(x).to(DEVICE) for x in (q, k, v))
    out = torch.empty(o.shape, dtype=q.dtype, device=DEVICE)
    lse = torch.empty(o.shape[:3], dtype=torch.float32, device=DEVICE)
    dims = [max(16, triton.next_power_of_2(d)) for d in (problem.dim_qk, problem.dim_v)]
    block, keys = (16, 16) if max(dims) > 128 else (32, 32)
    grid = (triton.cdiv(problem.len_q, block), problem.batch * problem.heads_q)
    attend[grid](q, k, v, out, lse, problem.scale, problem.len_q, problem.len_kv, problem.dim_qk, problem.dim_v,
                 problem.heads_q, problem.heads_q // problem.heads_kv, *q.stride(), *k.stride(), *v.stride(),
                 CAUSAL=bool(problem.causal), D=dims[0], DV=dims[1], BLOCK=block, KEYS=keys)
    return out.cpu().numpy(), lse.cpu().numpy()
