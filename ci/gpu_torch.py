#!/usr/bin/env python3
"""PyTorch's CUDA attention backends on the shapes of gpu_benchmark, in its columns."""
import sys

try:
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
except ImportError as missing:
    sys.exit(f"not run: {missing}")

TOKENS = 16384
BACKENDS = {"torch_flash": SDPBackend.FLASH_ATTENTION, "torch_efficient": SDPBackend.EFFICIENT_ATTENTION,
            "torch_cudnn": SDPBackend.CUDNN_ATTENTION}


def milliseconds(run, warm_up=2, rounds=5):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for n in range(warm_up + rounds):
        if n == warm_up:
            start.record()
        run()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / rounds


def main():
    for name, backend in BACKENDS.items():
        for dim in (64, 128):
            length = 512
            while length <= TOKENS:
                for causal in (False, True):
                    shape = (TOKENS // length, 2048 // dim, length, dim)
                    q, k, v = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(3))
                    try:
                        with sdpa_kernel(backend):
                            ms = milliseconds(lambda: torch.nn.functional.scaled_dot_product_attention(
                                q, k, v, is_causal=causal))
                    except RuntimeError as refused:
                        print(f"{name}\t{dim}\t{length}\t{'causal' if causal else 'full'}\tnot run: "
                              f"{str(refused).splitlines()[0]}")
                        continue
                    flops = 4 * shape[0] * shape[1] * length * length * dim / (2 if causal else 1)
                    print(f"{name}\t{dim}\t{length}\t{'causal' if causal else 'full'}\t{ms:.4f}\t{flops / ms * 1e-9:.1f}")
                length *= 2


if __name__ == "__main__":
    main()
