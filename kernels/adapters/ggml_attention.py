"""ggml's flash_attn_ext on a CPU, as llama.cpp calls it, with keys and values in f32.

    attest check python:ggml_attention --python .venv/bin/python

It is called through ctypes in the library of the package xllamacpp. The tensors of ggml are copies, rows
contiguous; a mask is additive and of f16. Its ALiBi takes slopes from the number of heads alone, and is left out.
A hidden value may be multiplied by a weight of zero, so that NaN in it reaches the output: `unspecified`.
"""

import ctypes
from ctypes import c_bool, c_char_p, c_float, c_int, c_int64, c_size_t, c_void_p

import numpy as np
import xllamacpp

TYPES = {np.dtype("f4"): 0, np.dtype("f2"): 1}
NODES = 4 << 20  # bytes: the graph and the heads of its tensors, of which ggml wants some hundred thousand


class Pool(ctypes.Structure):
    _fields_ = [("mem_size", c_size_t), ("mem_buffer", c_void_p), ("no_alloc", c_bool)]


def declared(library):
    pointer = c_void_p
    for name, result, arguments in (
            ("version", c_char_p, []), ("init", pointer, [Pool]), ("free", None, [pointer]),
            ("new_tensor_4d", pointer, [pointer, c_int] + 4 * [c_int64]), ("get_data", pointer, [pointer]),
            ("flash_attn_ext", pointer, 5 * [pointer] + 3 * [c_float]),
            ("flash_attn_ext_add_sinks", None, [pointer, pointer]), ("new_graph", pointer, [pointer]),
            ("build_forward_expand", None, [pointer, pointer]),
            ("graph_compute_with_ctx", c_int, [pointer, pointer, c_int])):
        function = getattr(library, "ggml_" + name)
        function.restype, function.argtypes = result, arguments
    return library


GGML = declared(ctypes.CDLL(xllamacpp.xllamacpp.__file__))

ATTEST = {
    "name": "ggml_attention",
    "version": GGML.ggml_version().decode(),
    "formats": ["f32"],
    "memory": "host",
    "features": ["causal", "window", "mask_bool", "mask_additive", "softcap", "sink", "gqa", "dim_v", "scale", "lens_kv"],
    "takes": {"batch": {"least": 1}, "len_q": {"least": 1}, "len_kv": {"least": 1}},
    "dialect": {"empty_row": "zeros", "softcap": "before_bias", "nonfinite": "unspecified"},
    "numerics": {"accumulate": "f32", "exp_ulp": 2, "bias": "f16", "deterministic": True},
}


def hidden(problem, lens_kv):
    """Bool [B,Tq,Tk], true where causality, the window or the length of a sequence hides a key; None where nothing does."""
    keys = np.arange(problem.len_kv)
    lengths = np.full(problem.batch, problem.len_kv) if lens_kv is None else lens_kv
    ends = np.arange(problem.len_q) + (lengths[:, None] - problem.len_q)
    ends = ends[:, :, None]
    found = np.broadcast_to(keys >= lengths[:, None, None], (problem.batch, problem.len_q, problem.len_kv))
    right = 0 if problem.causal else problem.window_right
    if right >= 0:
        found = found | (keys > ends + right)
    if problem.window_left >= 0:
        found = found | (keys < ends - problem.window_left)
    return found if found.any() else None


def whole_mask(problem, mask, lens_kv):
    """The additive mask in f16, [B or 1, Hq or 1, Tq, Tk], or None."""
    never = hidden(problem, lens_kv)
    if mask is None and never is None:
        return None
    if mask is None:
        added = np.float32(0)
    elif mask.dtype == np.uint8:
        added = np.where(mask != 0, np.float32(0), -np.inf)
    else:
        added = mask
    if never is not None:
        added = np.where(never[:, None], -np.inf, added)
    return np.broadcast_to(added, added.shape[:2] + (problem.len_q, problem.len_kv)).astype(np.float16)


def forward(problem, q, k, v, *, mask=None, sinks=None, lens_kv=None, **_):
    added = whole_mask(problem, mask, lens_kv)
    inputs = [q, k, v] + [x for x in (added, sinks) if x is not None]
    rows = problem.batch * problem.heads_q * problem.len_q
    bytes_wanted = sum(x.nbytes + 64 for x in inputs) + 4 * rows * v.shape[-1]
    # What ggml works in: its tiles of 64 queries and 64 keys in f32, or a row's parts where the keys are split.
    scratch = 4 * 64 * (3 * q.shape[-1] + 3 * v.shape[-1] + 3 * 64) + 4 * 3 * rows * (2 + v.shape[-1])
    pool = GGML.ggml_init(Pool(bytes_wanted + scratch + NODES, None, False))

    def tensor(array):
        extents = (1, 1, 1, 1) + array.shape
        made = GGML.ggml_new_tensor_4d(pool, TYPES[array.dtype], *extents[:-5:-1])
        rows = np.ascontiguousarray(array)
        ctypes.memmove(GGML.ggml_get_data(made), rows.ctypes.data, rows.nbytes)
        return made

    made = [tensor(x) for x in (q, k, v)] + [None if added is None else tensor(added)]
    result = GGML.ggml_flash_attn_ext(pool, *made, problem.scale, 0.0, problem.softcap)
    if sinks is not None:
        GGML.ggml_flash_attn_ext_add_sinks(result, tensor(sinks))
    graph = GGML.ggml_new_graph(pool)
    GGML.ggml_build_forward_expand(graph, result)
    status = GGML.ggml_graph_compute_with_ctx(pool, graph, 1)
    shape = (problem.batch, problem.len_q, problem.heads_q, v.shape[-1])
    out = np.empty(shape, np.float32)
    ctypes.memmove(out.ctypes.data, GGML.ggml_get_data(result), out.nbytes)
    GGML.ggml_free(pool)
    if status:
        raise RuntimeError(f"ggml ends with status {status}")
    return out.transpose(0, 2, 1, 3)
