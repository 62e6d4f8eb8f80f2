"""PyTorch's scaled_dot_product_attention as kernels attest can judge, one module a backend.

    attest check python:torch_sdpa.flash --python .venv/bin/python

and torch_sdpa.math, .efficient, .cudnn. They run on the CUDA device where there is one, else on the CPU,
which has flash and math; the version says which. A causal mask is aligned top-left; there is no LSE
output; a hidden value is multiplied by a weight of zero, so that NaN in it reaches the output. What a
backend takes is asked of PyTorch itself, and a refusal is told in its words. On a CPU math and flash are judged with the
gradients of autograd.
"""

import warnings

import torch
from torch.nn.attention import sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
TYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}

torch.set_num_threads(1)  # attest runs a worker on each core
torch.set_warn_always(True)  # the reasons of a refusal are warnings
# Inputs are read-only here, and no backend writes them.
warnings.filterwarnings("ignore", message="The given NumPy array is not writable")


def manifest(name, formats, features, numerics, empty_row="zeros", gradients=()):
    where = torch.cuda.get_device_name() if CUDA else f"CPU {torch.backends.cpu.get_cpu_capability()}"
    return {
        "name": f"torch_sdpa.{name}",
        "version": f"{torch.__version__} on {where}",
        "formats": formats,
        "memory": "host",
        "gradients": {"autograd": [] if CUDA else list(gradients)},
        "features": ["causal", "scale", "layout", *features],
        "dialect": {"causal": "top_left", "empty_row": empty_row, "nonfinite": "unspecified"},
        "numerics": {"accumulate": "f32", "deterministic": True, **numerics},
    }


def supports(backend, problem):
    heads = {"q": problem.heads_q, "k": problem.heads_kv, "v": problem.heads_kv}
    lengths = {"q": problem.len_q, "k": problem.len_kv, "v": problem.len_kv}
    dims = {"q": problem.dim_qk, "k": problem.dim_qk, "v": problem.dim_v}
    tensors = [torch.empty(problem.batch, heads[x], lengths[x], dims[x], device=DEVICE,
                           dtype=TYPES[problem.format_q.name]) for x in "qkv"]
    mask = None
    if problem.mask_kind:
        mask = torch.empty(problem.batch, problem.heads_q, problem.len_q, problem.len_kv, device=DEVICE,
                           dtype=torch.bool if problem.mask_kind == 1 else tensors[0].dtype)
    with sdpa_kernel(backend), warnings.catch_warnings(record=True) as reasons:
        warnings.simplefilter("always")
        try:
            torch._fused_sdp_choice(*tensors, attn_mask=mask, **options(problem))
        except RuntimeError as refused:
            told = [str(reason.message).split(" (Triggered")[0] for reason in reasons]
            return told[-1] if told else str(refused).splitlines()[0]
    return True


def options(problem):
    """PyTorch takes a mask or is_causal, not both: given both, the mask takes in the causal one."""
    return {"is_causal": bool(problem.causal and not problem.mask_kind), "scale": problem.scale,
            "enable_gqa": problem.heads_q != problem.heads_kv}


def on_device(tensor, rows_contiguous):
    """A copy with the caller's strides, where they leave no gaps and the backend takes them. It is aligned as
    PyTorch aligns: the CPU's matrix products round by the address modulo 16."""
    tensor = tensor.to(DEVICE, copy=True)
    if rows_contiguous and tensor.stride(-1) != 1:
        return tensor.clone(memory_format=torch.contiguous_format)
    return tensor


def forward(backend, rows_contiguous, problem, q, k, v, *, mask=None, **_):
    q, k, v = (on_device(x, rows_contiguous) for x in (q, k, v))
    if mask is not None:
        whole = mask.shape[:2] + (problem.len_q, problem.len_kv)
        if mask.requires_grad:  # its gradient is added up over what shares it, and rounded then
            mask = mask.to(torch.promote_types(mask.dtype, torch.float32))
        mask = on_device(mask.expand(whole).contiguous(), rows_contiguous)
        if problem.causal:
            later = torch.ones(whole[2:], dtype=torch.bool, device=DEVICE).triu(1)
            mask = mask.masked_fill(later, False if mask.dtype == torch.bool else -torch.inf)
    with sdpa_kernel(backend):
        return scaled_dot_product_attention(q, k, v, attn_mask=mask, **options(problem))
