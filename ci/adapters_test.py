#!/usr/bin/env python3
"""adapters_test.py ATTEST: judges ONNX Runtime and PyTorch through their adapters, where a virtual environment
has them.

Exit 77 says "not run" with the reason. The set-up is kernels/adapters/set_up; ATTEST_ADAPTER_PYTHON names
another interpreter. What is expected of each adapter was measured with the version it prints; the backends
PyTorch has on CUDA alone are judged by ci/gpu.
"""
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ADAPTERS = os.path.join(ROOT, "kernels", "adapters")
PYTHON = os.environ.get("ATTEST_ADAPTER_PYTHON", os.path.join(ROOT, ".venv", "bin", "python"))
NOT_RUN = 77
QUICK = ["--profile", "quick", "--cases", "12"]

# package -> what it needs, then: adapter, arguments, exit code
EXPECTED = {
    "onnxruntime": ("numpy, onnx, onnxruntime", [
        ("onnxruntime_attention", QUICK, 0),
        ("onnxruntime_attention_cached", QUICK, 0),
        # What it breaks is told in fixtures/README.md, under found_*.
        ("onnxruntime_attention_double", [*QUICK, "--match", "reference.output"], 1),
    ]),
    "torch": ("numpy, torch", [
        ("torch_sdpa.math", QUICK, 0),
        ("torch_sdpa.flash", QUICK, 0),
    ]),
}


def version(package, needs):
    """None where it cannot be imported."""
    if not os.path.exists(PYTHON):
        return None
    found = subprocess.run([PYTHON, "-c", f"import {needs}; print({package}.__version__)"], capture_output=True, text=True)
    return None if found.returncode else found.stdout.strip()


def judged(attest, adapter, arguments, expected):
    with tempfile.TemporaryDirectory() as out:
        run = subprocess.run([attest, "check", f"python:{adapter}:forward", "--python", PYTHON, "--out", out,
                              "--seed", "1", *arguments],
                             env=dict(os.environ, PYTHONPATH=ADAPTERS), capture_output=True, text=True)
    print(run.stdout, run.stderr, sep="")
    if run.returncode != expected:
        print(f"{adapter}: exit {run.returncode}, expected {expected}")
    return run.returncode == expected


def main(attest):
    results = []
    for package, (needs, adapters) in EXPECTED.items():
        found = version(package, needs)
        if found is None:
            print(f"not run: {PYTHON} has no {package}; kernels/adapters/set_up {package} installs it")
            continue
        print(package, found)
        results += [judged(attest, *one) for one in adapters]
    return NOT_RUN if not results else 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
