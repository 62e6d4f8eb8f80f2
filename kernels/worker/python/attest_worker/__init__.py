"""The process in which attest runs an attention kernel written in Python.

A kernel is a module with a dict ATTEST (its manifest) and a function
forward(problem, q, k, v, **tensors) that returns o or (o, lse), or fills tensors["o"] and
tensors["lse"]. Arrays are numpy views of the memory shared with attest; bfloat16 comes as uint16:
widen() and narrow() convert.
"""

from attest_worker.protocol import Format

__all__ = ["Format", "narrow", "widen"]


def __getattr__(name):
    # numpy is imported only where it is used: the worker has to start without it to say so.
    if name in ("widen", "narrow"):
        from attest_worker import formats

        return getattr(formats, name)
    raise AttributeError(name)
