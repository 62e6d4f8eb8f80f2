"""ONNX Runtime's CPU kernel for the ONNX operator Attention, opset 23, as a kernel attest can judge.

    attest check python:onnxruntime_attention:forward --python .venv/bin/python

The dialect is the operator's own: a causal mask is aligned top-left, a row that sees no key is zeros
(the operator's specification, since its correction of 2026). There is no LSE output. A hidden value is
multiplied by a weight of zero, so that NaN in it reaches the output: the dialect says `unspecified`.
"""

import functools

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

OPSET = 23

ATTEST = {
    "name": "onnxruntime_attention",
    "version": onnxruntime.__version__,
    "formats": ["f32"],
    "memory": "host",
    "features": ["causal", "mask_bool", "mask_additive", "softcap", "gqa", "dim_v", "scale", "layout"],
    "dialect": {"causal": "top_left", "empty_row": "zeros", "softcap": "before_bias",
                "nonfinite": "unspecified"},
    "numerics": {"accumulate": "f32", "weights": "same", "output": "same", "exp_ulp": 2,
                 "deterministic": True},
}

ELEMENT = {np.dtype("f8"): TensorProto.DOUBLE, np.dtype("f4"): TensorProto.FLOAT,
           np.dtype("f2"): TensorProto.FLOAT16, np.dtype("u1"): TensorProto.BOOL}


def supports(problem):
    """What the manifest has no word for."""
    if 0 in (problem.batch, problem.len_q, problem.len_kv):
        return "the runtime refuses an axis of length zero"
    if problem.scale <= 0:
        return "the scale is applied as two square roots, so it must be positive"
    return True


@functools.lru_cache(maxsize=256)
def session(opset, element, mask, lengths, causal, softcap, scale):
    """One model a combination of attributes; every axis is symbolic, so shapes do not matter."""
    tensors = [(name, element, [f"{name}{axis}" for axis in range(4)]) for name in "qkv"]
    node_inputs = ["q", "k", "v"]
    if mask is not None:
        tensors.append(("mask", mask, [f"m{axis}" for axis in range(4)]))
    if mask is not None or lengths:
        node_inputs.append("mask" if mask is not None else "")
    if lengths:
        tensors.append(("lens_kv", TensorProto.INT64, ["batch"]))
        node_inputs += ["", "", "lens_kv"]
    attributes = {} if scale is None else {"scale": scale}
    node = helper.make_node("Attention", node_inputs, ["o"], is_causal=causal, softcap=softcap, **attributes)
    graph = helper.make_graph([node], "attention", [helper.make_tensor_value_info(*t) for t in tensors],
                              [helper.make_tensor_value_info("o", element, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 10
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options,
                                        providers=["CPUExecutionProvider"])


def scale_of(problem):
    """None where it is the operator's own: the attribute is a float, which 1/sqrt(d) in f64 is not."""
    return None if problem.scale == problem.dim_qk**-0.5 else float(problem.scale)


def forward(problem, q, k, v, *, mask=None, lens_kv=None, opset=OPSET, **_):
    # The runtime copies anything that is not C-contiguous; values and shapes stay the caller's.
    feed = {"q": np.ascontiguousarray(q), "k": np.ascontiguousarray(k), "v": np.ascontiguousarray(v)}
    if mask is not None:
        # The runtime takes no mask that is shared by the queries, though the operator does.
        whole = np.broadcast_to(mask, mask.shape[:2] + (q.shape[2], k.shape[2]))
        feed["mask"] = np.ascontiguousarray(whole).astype(bool if mask.dtype == np.uint8 else mask.dtype)
    if lens_kv is not None:
        feed["lens_kv"] = lens_kv.astype(np.int64)
    mask_element = None if mask is None else ELEMENT[mask.dtype]
    run = session(opset, ELEMENT[q.dtype], mask_element, lens_kv is not None, int(problem.causal),
                  float(problem.softcap), scale_of(problem))
    return run.run(["o"], feed)[0]
