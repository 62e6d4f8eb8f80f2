"""For attest's own tests: a kernel whose module needs another that is not there."""

ATTEST = {"name": "raises_at_import", "version": "1", "formats": ["f32"]}

import no_such_framework  # noqa: E402, F401


def forward(problem, q, k, v, **_):
    return q
