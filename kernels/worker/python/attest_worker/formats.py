"""bfloat16, which numpy does not have: it travels as uint16."""

import numpy as np


def widen(array):
    """float32 of bfloat16 bits (exact); any other array as it is."""
    if array.dtype != np.uint16:
        return array
    return (array.astype(np.uint32) << 16).view(np.float32)


def narrow(array):
    """bfloat16 bits of float32 values, rounded to nearest, ties to even."""
    bits = np.ascontiguousarray(array, dtype=np.float32).view(np.uint32)
    # The largest carry that cannot pass a tie: 0x7fff, and one more where the kept part is odd.
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    # A NaN keeps its sign and its upper payload; the quiet bit keeps it from turning into infinity.
    is_nan = (bits & 0x7FFFFFFF) > 0x7F800000
    return np.where(is_nan, (bits >> 16) | 0x40, rounded).astype(np.uint16)
