"""torch.nn.MultiheadAttention with projections that change nothing, so that what is left is its attention, with the
gradients autograd makes of it. Its mask is True where a pair is hidden. A row that sees no key is NaN: `refuse`.

Half formats are left out: it rounds scores to them, and the identity matrices lose subnormals in bf16.
"""

import torch

torch.set_num_threads(1)  # attest runs a worker on each core

ATTEST = {
    "name": "torch_mha",
    "version": torch.__version__,
    "formats": ["f64", "f32"],
    "features": ["mask_bool", "mask_additive", "lens_kv", "layout"],
    "gradients": "autograd",
    "dialect": {"empty_row": "refuse", "nonfinite": "unspecified"},
    "numerics": {"exp_ulp": 2, "deterministic": True, "deterministic_backward": True},
}


def supports(problem):
    if 0 in (problem.batch, problem.len_q, problem.len_kv):
        return "an axis of length zero"
    # The projection of the outputs multiplies the NaN of one head by 0 for another.
    return True if problem.heads_q == 1 or not problem.mask_kind else "masks of several heads"


def module(heads, dim, dtype):
    made = torch.nn.MultiheadAttention(heads * dim, heads, bias=False, batch_first=True, dtype=dtype)
    made.requires_grad_(False).eval()
    made.in_proj_weight.copy_(torch.eye(heads * dim, dtype=dtype).repeat(3, 1))
    made.out_proj.weight.copy_(torch.eye(heads * dim, dtype=dtype))
    return made


def forward(problem, q, k, v, *, mask=None, lens_kv=None, **_):
    batch, heads, _, dim = q.shape
    padding = None if lens_kv is None else torch.arange(problem.len_kv) >= lens_kv[:, None]
    if mask is not None:
        mask = mask.expand(batch, heads, problem.len_q, problem.len_kv).reshape(-1, problem.len_q, problem.len_kv)
        mask = ~mask if mask.dtype == torch.bool else mask
    q, k, v = (x.transpose(1, 2).flatten(2) for x in (q, k, v))
    o, _ = module(heads, dim, q.dtype)(q, k, v, attn_mask=mask, key_padding_mask=padding, need_weights=False)
    return o.unflatten(2, (heads, dim)).transpose(1, 2)
