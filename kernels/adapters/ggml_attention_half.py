"""The same with queries in f32 and keys and values in f16, as llama.cpp keeps its cache.

Fewer than 64 queries at once: they are rounded to f16, and outputs are added up in f16. As many or more: in f32.
"""

import ggml_attention
from ggml_attention import forward  # noqa: F401

ATTEST = {**ggml_attention.ATTEST, "name": "ggml_attention_half", "formats": ["f32 kv f16"],
          "numerics": {"accumulate": "f16", "query": "f16", "bias": "f16", "exp_ulp": 2, "deterministic": True}}
