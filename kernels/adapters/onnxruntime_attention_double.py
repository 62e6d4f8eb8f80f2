"""ONNX Runtime on the ONNX operator Attention, opset 23, in f64: no kernel of its own, but the operator's
function body, expanded into smaller operators.

    attest check python:onnxruntime_attention_double:forward --python .venv/bin/python
"""

import onnxruntime_attention as plain

ATTEST = dict(plain.ATTEST, name="onnxruntime_attention_double", formats=["f64"],
              numerics=dict(plain.ATTEST["numerics"], accumulate="f64"))
supports = plain.supports
forward = plain.forward
