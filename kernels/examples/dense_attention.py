"""Attention as many a script has it: dense, no mask, no option. Over no keys NumPy has no maximum, and says so."""
import numpy as np

ATTEST = {"name": "dense_attention", "version": "1", "formats": ["f32"]}


def forward(problem, q, k, v, **_):
    scores = q @ k.swapaxes(-1, -2) * problem.scale
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v
