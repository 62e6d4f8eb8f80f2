"""For attest's own tests: no attention, only attest_worker's rounding of f32 to bfloat16."""

from attest_worker import narrow, widen

ATTEST = {
    "name": "narrowing",
    "version": "1",
    "formats": ["f32", "bf16"],
    "features": ["mixed_formats", "dim_v"],
}


def forward(problem, q, k, v, **_):
    assert (narrow(widen(narrow(q))) == narrow(q)).all()
    return narrow(q)
