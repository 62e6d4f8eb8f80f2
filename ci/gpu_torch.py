#!/usr/bin/env python3
"""gpu_torch.py FOLDER: PyTorch's CUDA attention backends beside ours. Reads FOLDER/benchmark.tsv, as gpu_benchmark wrote it
minutes before on the same device, measures the same shapes and writes the file again with PyTorch's rows, and in
the last column each row's speed as a multiple of PyTorch's flash backend. FOLDER/torch_empty_rows.tsv tells what
a backend makes of a row that sees no key, which nothing documents."""
import os
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

BACKENDS = {"torch_flash": SDPBackend.FLASH_ATTENTION, "torch_efficient": SDPBackend.EFFICIENT_ATTENTION,
            "torch_cudnn": SDPBackend.CUDNN_ATTENTION, "torch_math": SDPBackend.MATH}
SCORE_BYTES_MAX = 2**33  # of the math backend, which keeps them all, several times


def milliseconds(run, warm_up=2, rounds=5):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for n in range(warm_up + rounds):
        if n == warm_up:
            start.record()
        run()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / rounds


def measured(backend, shape):
    """Milliseconds, or why not."""
    batch, heads, len_q, len_kv, dim = (int(x) for x in shape[:5])
    if backend == SDPBackend.MATH and 4 * batch * heads * len_q * len_kv > SCORE_BYTES_MAX:
        return "not run: its scores do not fit"
    q = torch.randn(batch, heads, len_q, dim, device="cuda", dtype=torch.bfloat16)
    k, v = (torch.randn(batch, heads, len_kv, dim, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    try:
        with sdpa_kernel(backend):
            return milliseconds(lambda: scaled_dot_product_attention(q, k, v, is_causal=shape[5] == "causal"))
    except RuntimeError as refused:
        return "not run: " + str(refused).splitlines()[0]


def compare(path):
    with open(path, encoding="ascii") as file:
        header, *ours = [line.rstrip("\n").split("\t") for line in file]
    shapes = list(dict.fromkeys(tuple(row[1:7]) for row in ours))
    rows = [(row[0], tuple(row[1:7]), float(row[7])) for row in ours]
    rows += [(name, shape, measured(backend, shape)) for name, backend in BACKENDS.items() for shape in shapes]
    flash = {shape: ms for name, shape, ms in rows if name == "torch_flash" and isinstance(ms, float)}
    with open(path, "w", encoding="ascii") as file:
        print(*header, "times_torch_flash", sep="\t", file=file)
        for name, shape, ms in sorted(rows, key=lambda row: shapes.index(row[1])):
            if isinstance(ms, str):
                print(name, *shape, ms, "", "", sep="\t", file=file)
                continue
            batch, heads, len_q, len_kv, dim = (int(x) for x in shape[:5])
            flops = 4 * batch * heads * len_q * len_kv * dim / (2 if shape[5] == "causal" else 1)
            ratio = f"{flash[shape] / ms:.3f}" if shape in flash else ""
            print(name, *shape, f"{ms:.4f}", f"{flops / ms * 1e-9:.1f}", ratio, sep="\t", file=file)


def empty_rows(path):
    """The first of two queries sees no key; by a mask of booleans, and by one of -inf."""
    with open(path, "w", encoding="ascii") as file:
        print("backend", "format", "mask", "row", sep="\t", file=file)
        for name, backend in BACKENDS.items():
            for dtype in (torch.float32, torch.float16, torch.bfloat16):
                x = torch.ones(1, 1, 64, 64, device="cuda", dtype=dtype)
                seen = torch.ones(1, 1, 64, 64, device="cuda", dtype=torch.bool)
                seen[:, :, 0] = False
                added = torch.zeros_like(x).masked_fill_(~seen, -torch.inf)
                for kind, mask in (("bool", seen), ("additive", added)):
                    try:
                        with sdpa_kernel(backend):
                            row = scaled_dot_product_attention(x, x, x, attn_mask=mask)[0, 0, 0]
                        answer = "zeros" if bool((row == 0).all()) else "nan" if bool(row.isnan().all()) else "other"
                    except RuntimeError:
                        answer = "refused"
                    print(name, str(dtype).removeprefix("torch."), kind, answer, sep="\t", file=file)


if __name__ == "__main__":
    empty_rows(os.path.join(sys.argv[1], "torch_empty_rows.tsv"))
    compare(os.path.join(sys.argv[1], "benchmark.tsv"))
