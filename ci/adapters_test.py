#!/usr/bin/env python3
"""adapters_test.py ATTEST: judges ONNX Runtime, PyTorch, Triton, JAX and ggml through their adapters, where a Python has them.

Exit 77 says "not run" with the reason. The set-up is kernels/adapters/set_up, whose Python is asked first and then the
system's (Debian has python3-torch); ATTEST_ADAPTER_PYTHON names another interpreter. What is expected of each adapter was measured with the version it prints; the backends
PyTorch has on CUDA alone are judged by ci/gpu.
"""
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ADAPTERS = os.path.join(ROOT, "kernels", "adapters")
EXAMPLES = os.path.join(ROOT, "kernels", "examples")
NAMED = os.environ.get("ATTEST_ADAPTER_PYTHON")
PYTHONS = [NAMED] if NAMED else [os.path.join(ROOT, ".venv", "bin", "python"), "/usr/bin/python3"]
NOT_RUN = 77
QUICK = ["--profile", "quick", "--cases", "12"]

# what the set-up calls it -> what it imports, the package first, then: adapter, arguments, exit code
EXPECTED = {
    "onnxruntime": ("onnxruntime, onnx, numpy", [
        ("onnxruntime_attention", QUICK, 0),
        ("onnxruntime_attention_cached", QUICK, 0),
        # What it breaks is told in fixtures/README.md, under found_*.
        ("onnxruntime_attention_double", [*QUICK, "--match", "reference.output"], 1),
    ]),
    "torch": ("torch, numpy", [
        ("torch_attention", QUICK, 0),
        ("torch_mha", QUICK, 0),
    ]),
    "torch 2": ("torch, torch.nn.attention, numpy", [
        ("torch_sdpa.math", QUICK, 0),
        ("torch_sdpa.flash", QUICK, 0),
        ("torch_sdpa.flash_half", QUICK, 0),
    ]),
    # `attest new triton` begins with it. In the interpreter a case takes seconds.
    "triton": ("triton, torch, numpy", [
        ("triton_attention", ["--profile", "quick", "--cases", "4", "--shapes", "4", "--match", "reference.output"], 0),
    ]),
    "ggml": ("xllamacpp, numpy", [
        ("ggml_attention", QUICK, 0),
        ("ggml_attention_half", QUICK, 0),
    ]),
    # Every shape is compiled anew: seconds a case.
    "jax": ("jax, numpy", [
        ("jax_attention", ["--profile", "quick", "--cases", "1", "--match", "gradients.key_sum"], 0),
        # Its softmax is of f32 (kernels/adapters/README.md).
        ("jax_attention_double", ["--profile", "quick", "--cases", "1", "--match", "reference.output"], 1),
    ]),
}


def found(imports):
    """(the first Python that imports these, the first one's version), or None."""
    for python in filter(os.path.exists, PYTHONS):
        asked = subprocess.run([python, "-c", f"import {imports}; print({imports.split(',')[0]}.__version__)"],
                               capture_output=True, text=True)
        if asked.returncode == 0:
            return python, asked.stdout.strip()
    return None


def judged(attest, python, adapter, arguments, expected):
    with tempfile.TemporaryDirectory() as out:
        run = subprocess.run([attest, "check", f"python:{adapter}:forward", "--python", python, "--out", out,
                              "--seed", "1", *arguments],
                             env=dict(os.environ, PYTHONPATH=f"{ADAPTERS}:{EXAMPLES}"), capture_output=True, text=True)
    print(run.stdout, run.stderr, sep="")
    if run.returncode != expected:
        print(f"{adapter}: exit {run.returncode}, expected {expected}")
    return run.returncode == expected


def main(attest):
    results = []
    for name, (imports, adapters) in EXPECTED.items():
        python, version = found(imports) or (None, None)
        if python is None:
            print(f"not run: no {name}; kernels/adapters/set_up {name.split()[0]} installs it")
            continue
        print(name, version, python)
        results += [judged(attest, python, *one) for one in adapters]
    return NOT_RUN if not results else 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
