"""For attest's own tests: no attention. Refuses everything, with the problem as it was told."""

ATTEST = {
    "name": "tells_problem",
    "version": "1",
    "formats": ["f64", "f32", "f16", "bf16"],
    "features": "causal window lens_q lens_kv mask_bool mask_additive documents softcap sink alibi rope dropout gqa "
                "dim_v scale cache paged splits layout lse mixed_formats keys_rotated d_lse ring negative_scale".split(),
    "gradients": ["q"],
}


def supports(problem):
    return f"{problem!r} {' '.join(problem.features)}"


def forward(problem, q, k, v, **tensors):
    raise AssertionError("supports() refused everything")


backward = forward
