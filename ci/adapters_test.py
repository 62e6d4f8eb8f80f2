#!/usr/bin/env python3
"""adapters_test.py ATTEST: judges ONNX Runtime through its adapters, where a virtual environment has it.

Exit 77 says "not run" with the reason. The set-up is kernels/adapters/set_up_onnxruntime; ATTEST_ADAPTER_PYTHON
names another interpreter. What is expected of each adapter was measured with the version it prints.
"""
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ADAPTERS = os.path.join(ROOT, "kernels", "adapters")
PYTHON = os.environ.get("ATTEST_ADAPTER_PYTHON", os.path.join(ROOT, ".venv", "bin", "python"))
NOT_RUN = 77

# adapter -> (arguments, exit code)
EXPECTED = {
    "onnxruntime_attention": (["--profile", "quick", "--cases", "12"], 0),
    "onnxruntime_attention_cached": (["--profile", "quick", "--cases", "12"], 0),
    # What it breaks is told in fixtures/README.md, under found_*.
    "onnxruntime_attention_double": (["--profile", "quick", "--cases", "12", "--match", "reference.output"], 1),
}


def main(attest):
    found = subprocess.run([PYTHON, "-c", "import numpy, onnx, onnxruntime; print(onnxruntime.__version__)"],
                           capture_output=True, text=True) if os.path.exists(PYTHON) else None
    if found is None or found.returncode:
        print(f"not run: {PYTHON} has no onnxruntime; kernels/adapters/set_up_onnxruntime installs it")
        return NOT_RUN
    print("onnxruntime", found.stdout.strip())
    faults = 0
    for adapter, (arguments, expected) in EXPECTED.items():
        with tempfile.TemporaryDirectory() as out:
            run = subprocess.run([attest, "check", f"python:{adapter}:forward", "--python", PYTHON, "--out", out,
                                  "--seed", "1", *arguments],
                                 env=dict(os.environ, PYTHONPATH=ADAPTERS), capture_output=True, text=True)
        print(run.stdout, run.stderr, sep="")
        if run.returncode != expected:
            print(f"{adapter}: exit {run.returncode}, expected {expected}")
            faults += 1
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
