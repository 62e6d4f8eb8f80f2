"""jax.nn.dot_product_attention in f64: its softmax is computed in f32 whatever the inputs are, which breaks laws.

Run by itself, without attest, it shows so against the definition in numpy's f64, gradients too:

    .venv/bin/python kernels/adapters/jax_attention_double.py
"""

import jax_attention as plain

ATTEST = dict(plain.ATTEST, name="jax_attention_double", formats=["f64"],
              numerics=dict(plain.ATTEST["numerics"], accumulate="f64"))
supports = plain.supports
forward = plain.forward


def show():
    import jax
    import numpy as np

    jax.config.update("jax_enable_x64", True)
    # attest's smallest case: two keys, 0 and 1, one query and two values of 1.
    ones, k = np.ones((1, 2, 1, 1)), np.arange(2.0).reshape(1, 2, 1, 1)
    q, v, d_o = ones[:, :1], ones, ones[:, :1]
    o, pull_back = jax.vjp(lambda *qkv: jax.nn.dot_product_attention(*qkv, scale=1.0), q, k, v)
    p = np.exp(k[0, :, 0, 0]) / np.exp(k[0, :, 0, 0]).sum()
    exact = {"o": p.sum(), "d_q": 0.0, "d_k": np.zeros(2), "d_v": p}
    for name, got in zip(exact, (o, *pull_back(d_o))):
        print(f"{name} {got.dtype}: off by {np.abs(np.ravel(got) - exact[name]).max():.3g}")


if __name__ == "__main__":
    show()
