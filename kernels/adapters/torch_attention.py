"""Attention as PyTorch's own math path computes it, with the gradients autograd makes of it: two matrix products
around a softmax, in f32 for f16 and bf16. It runs on any PyTorch, also on those without scaled_dot_product_attention.

A row that sees no key is NaN here, and so are the gradients it reaches: `refuse`.
"""

import torch

torch.set_num_threads(1)  # attest runs a worker on each core

ATTEST = {
    "name": "torch_attention",
    "version": torch.__version__,
    "formats": ["f64", "f32", "f16", "bf16"],
    "features": ["causal", "window", "mask_bool", "mask_additive", "softcap", "sink", "gqa", "dim_v", "scale",
                 "layout", "lse"],
    "gradients": "autograd",
    "dialect": {"empty_row": "refuse", "nonfinite": "unspecified"},
    "numerics": {"weights": "f32", "exp_ulp": 2, "deterministic": True, "deterministic_backward": True},
}


def hidden(problem):
    """Which pairs the causal mask and the window hide, or None; bottom-right."""
    last = torch.arange(problem.len_q)[:, None] + problem.len_kv - problem.len_q
    key = torch.arange(problem.len_kv)
    left, right = problem.window_left, 0 if problem.causal else problem.window_right
    if problem.causal and problem.window_right >= 0:
        right = min(right, problem.window_right)
    mask = torch.zeros(problem.len_q, problem.len_kv, dtype=torch.bool)
    if left >= 0:
        mask |= key < last - left
    if right >= 0:
        mask |= key > last + right
    return mask


def forward(problem, q, k, v, *, mask=None, sinks=None, **_):
    kept = torch.float64 if q.dtype == torch.float64 else torch.float32
    out = {0: torch.float64, 1: torch.float32, 2: torch.float16, 3: torch.bfloat16}[int(problem.format_o)]
    group = problem.heads_q // problem.heads_kv
    # Copies lie as PyTorch aligns: matrix products round by the address of what they are given.
    q, k, v = (x.to(kept, copy=True) for x in (q, k, v))
    k, v = (x.repeat_interleave(group, dim=1) for x in (k, v))
    scores = q @ k.transpose(-1, -2) * problem.scale
    if problem.softcap:
        scores = problem.softcap * torch.tanh(scores / problem.softcap)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask.to(kept)
    scores = scores.masked_fill(hidden(problem), -torch.inf)
    if sinks is not None:
        sink = sinks.to(kept)[None, :, None, None].expand(*scores.shape[:3], 1)
        scores = torch.cat([scores, sink], dim=-1)
    weights = scores.softmax(-1)[..., : problem.len_kv]
    product = weights @ v
    if product.requires_grad:
        # And so does the gradient that it is given, in one layout whatever its own.
        product.register_hook(lambda d_o: d_o.clone(memory_format=torch.contiguous_format))
    return product.to(out), scores.logsumexp(-1).to(kept)
