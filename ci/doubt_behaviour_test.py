#!/usr/bin/env python3
"""doubt_behaviour_test.py ATTEST: what a law found and the profile does not fail stands beside the verdict, everywhere, with its case."""
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

ATTEST = None
# Within the worst that sums of so many terms may come to, but always too large.
BIASED = """import numpy as np

ATTEST = {"name": "biased", "version": "1", "formats": ["f32"], "features": [], "numerics": {"weights": "f32"}}


def forward(problem, q, k, v, o, **_):
    scores = problem.scale * np.einsum("bhid,bhjd->bhij", q.astype(np.float64), k)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    o[...] = (weights @ v / weights.sum(-1, keepdims=True)) * (1 + 2**-12)
"""


class Doubt(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cwd = folder.name
        with open(os.path.join(self.cwd, "lax.json"), "w", encoding="utf-8") as file:
            json.dump({"name": "lax", "version": 1, "cases_per_law": 10, "fails": []}, file)

    def attest(self, *arguments, code=0):
        run = subprocess.run([ATTEST, *arguments], cwd=self.cwd, capture_output=True, text=True, timeout=300,
                             env=dict({k: v for k, v in os.environ.items() if not k.startswith("GITHUB_")}, COLUMNS="80", NO_COLOR="1", LC_ALL="C"))
        self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        return run.stdout

    def check(self, law, *more):
        return self.attest("check", "mutant:M001", "--match", law, "--cases", "10", "--seed", "1", "--timeout", "60s", *more, "--report",
                           "--junit", "j.xml", "--summary", "s.txt", "--out", "run")

    def said(self, name):
        with open(os.path.join(self.cwd, name), encoding="utf-8") as file:
            return file.read()

    def test_a_suspicion_names_its_case_and_replays_as_one(self):
        screen = self.check("reference.probable")
        self.assertIn("! suspected  reference.probable, in 3 of 10 cases", screen)
        self.assertRegex(screen, "HOLDS   1 law, .*, 1 law is suspected   exit 0")
        replay = re.search("  replay +attest (replay '.*' --kernel mutant:M001 --law reference.probable)\n", screen)[1]
        for name in ("run/report.html", "j.xml", "s.txt"):
            self.assertIn("suspected", self.said(name), name)
            self.assertIn(re.search("b[0-9]+ hq[^']*", replay)[0], self.said(name), name)
        self.assertNotIn("<failure", self.said("j.xml"))
        again = self.attest(*shlex.split(replay))
        self.assertIn("reference.probable           suspected\n", again)
        self.assertIn("HOLDS   1 law, 1 suspected   exit 0", again)
        self.attest("certify", "mutant:M001", "--profile", "quick", "--match", "reference.probable", "--cases", "10", "--seed", "1", "--timeout", "60s", "--out", "cert", code=3)
        with open(os.path.join(self.cwd, "cert", "certificate.json"), encoding="utf-8") as file:
            law = next(law for law in json.load(file)["laws"] if law["law"] == "reference.probable")
        self.assertEqual((law["verdict"], law["doubt"]["class"], law["doubted"]["cases"]), ("holds", "suspect", 3))
        for page in ("html", "md"):
            self.assertIn("suspected", self.said("cert/certificate." + page))

    def test_explain_ends_as_replay_does_and_asks_what_the_kernel_is_asked(self):
        with open(os.path.join(self.cwd, "biased.py"), "w", encoding="utf-8") as file:
            file.write(BIASED)
        case = ["b1 hq1 hkv1 tq2 tk4000 d1 f32 values uniform", "--kernel", "python:biased", "--law", "reference.probable", "--timeout", "60s"]
        self.assertIn("suspected", self.attest("replay", *case))
        self.assertIn("reference.probable is suspected of this case: the output", self.attest("explain", *case))

    def test_what_a_profile_lets_pass_stands_in_its_verdict(self):
        screen = self.check("masking.causal", "--profile", "lax.json")
        words = "under profile lax, which fails nothing: 1 law is violated"
        self.assertIn("! HOLDS " + words + "\n", screen)
        self.assertIn("masking      !", screen)
        self.assertIn("passes profile lax, which fails nothing: 1 law is violated", self.said("run/report.html"))
        self.assertIn("passes profile lax, which fails nothing: 1 law is violated", self.said("s.txt"))
        self.assertIn("violated, not failed: query", self.said("j.xml"))


if __name__ == "__main__":
    ATTEST = os.path.abspath(sys.argv.pop(1))
    unittest.main()
