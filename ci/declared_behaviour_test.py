#!/usr/bin/env python3
"""declared_behaviour_test.py ATTEST: a kernel that is right in its own way is told the word that says so, and holds with it."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

ATTEST = None
ATTENTION = """import numpy as np


def forward(problem, q, k, v, o, lse=None, **_):
    scores = problem.scale * np.einsum("bhid,bhjd->bhij", q.astype(np.float64), k)
    most = scores.max(-1, keepdims=True)
    weights = np.exp(scores - most)
    total = weights.sum(-1, keepdims=True)
    o[...] = weights @ v / total
    if lse is not None:
        # As kernels do that are given a pointer and no strides: [B, H, T], each after the last.
        strides = 4 * np.array([lse.shape[1] * lse.shape[2], lse.shape[2], 1])
        np.lib.stride_tricks.as_strided(lse, lse.shape, strides)[...] = (most + np.log(total))[..., 0]
"""


class Declared(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cwd = folder.name

    def check(self, text, takes, *more, code, features=("lse",), **words):
        """What is said of a kernel of this text; every line of it is as wide as the screen."""
        manifest = {"name": "own", "version": "1", "formats": ["f32"], "features": features, "takes": {"len_kv": {"least": 1}, **takes}, **words}
        with open(os.path.join(self.cwd, "own.py"), "w", encoding="utf-8") as file:
            file.write(f"ATTEST = {json.dumps(manifest)}\n{text}")
        run = subprocess.run([ATTEST, "check", "python:own", "--seed", "5", "--timeout", "60s", *more], cwd=self.cwd,
                             capture_output=True, text=True, timeout=300, env=dict(os.environ, COLUMNS="80", NO_COLOR="1", LC_ALL="C"))
        self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        self.assertLessEqual(max(map(len, (run.stdout + run.stderr).splitlines())), 80)
        return " ".join((run.stdout + run.stderr).split())

    def test_a_log_sum_exp_in_an_order_of_its_own(self):
        laws, heads = ["--match", "reference.*", "--cases", "20"], {"heads_kv": 3, "orders": ["bthd"]}
        self.check(ATTENTION, {**heads, "lse_order": "bht"}, *laws, code=0)
        said = self.check(ATTENTION, heads, *laws, code=1)
        self.assertIn("it computes a log-sum-exp written as a contiguous [B, H, T]", said)
        self.assertIn("by design? declare takes: lse_order bht", said)
        self.assertIn("did you mean bht?", self.check(ATTENTION, {**heads, "lse_order": "bth"}, code=2))

    def test_an_error_of_problems_that_a_kernel_does_not_do(self):
        laws = ["--match", "reference.output", "--cases", "20"]
        eighths = ATTENTION.replace("    scores =", "    if problem.dim_qk % 8:\n        raise ValueError('no such dimension')\n    scores =")
        said = self.check(eighths, {"dim_qk": {"multiple": 4, "most": 64}}, code=1)
        self.assertIn("the kernel returned an error: ValueError: no such dimension (own.py:", said)
        self.assertIn("it declares that it takes this; by design? say no in supports(), or in takes of its manifest: when D mod 8 ", said)
        self.assertNotIn("by design", self.check(eighths, {"dim_qk": 12}, *laws, code=1))
        self.check(eighths, {"dim_qk": {"multiple": 8}}, *laws, code=0)

    def test_a_backward_that_refuses_everything_is_not_judged_and_training_says_so(self):
        refuses = ATTENTION + """

def backward(problem, q, k, v, d_o, **_):
    raise AssertionError("supports() refused it")


def supports(problem):
    return "no gradients today" if problem.want_grad else True
"""
        manifest = {"gradients": ["q", "k", "v"]}
        laws = ["--cases", "3", "--match", "reference.*"]
        said = self.check(refuses, {}, *laws, code=0, **manifest)
        self.assertIn("gradients: refuses them, which it declares (no gradients today)", said)
        said = self.check(refuses, {}, *laws, "--match", "dropout.*", "--profile", "training", code=3, **manifest)
        self.assertIn("reference.gradients: kernel refuses declared gradients; profile training asks for gradients", said)
        self.assertIn("kernel does not declare dropout", said)


if __name__ == "__main__":
    ATTEST = os.path.abspath(sys.argv.pop(1))
    unittest.main()
