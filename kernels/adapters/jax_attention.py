"""jax.nn.dot_product_attention, XLA on a CPU, with the gradients that jax.vjp makes of it.

Masks are aligned top-left; a row that sees no key is the mean of V, padding included: `refuse`.
"""

import jax

ATTEST = {
    "name": "jax_attention",
    "version": jax.__version__,
    "formats": ["f32"],
    "features": ["causal", "window", "mask_bool", "mask_additive", "lens_q", "lens_kv", "gqa", "scale", "layout"],
    "gradients": "vjp",
    "dialect": {"causal": "top_left", "empty_row": "refuse", "nonfinite": "unspecified"},
    "numerics": {"exp_ulp": 4, "flush_subnormals": True},
}


def supports(problem):
    if 0 in (problem.batch, problem.len_q, problem.len_kv):
        return "an axis of length zero"
    return True if min(problem.window_left, problem.window_right) >= -1 else "a window without an end"


def forward(problem, q, k, v, *, mask=None, lens_q=None, lens_kv=None, **_):
    q, k, v = (x.transpose(0, 2, 1, 3) for x in (q, k, v))
    given = {}
    if mask is not None:
        given["mask" if mask.dtype == bool else "bias"] = mask
    left, right = (problem.len_q + problem.len_kv if w < 0 else w for w in (problem.window_left, problem.window_right))
    if (problem.window_left, problem.window_right) != (-1, -1):
        given["local_window_size"] = (left, right)
    o = jax.nn.dot_product_attention(q, k, v, scale=problem.scale, is_causal=bool(problem.causal),
                                     query_seq_lengths=lens_q, key_value_seq_lengths=lens_kv, **given)
    return o.transpose(0, 2, 1, 3)
