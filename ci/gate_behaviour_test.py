#!/usr/bin/env python3
"""gate_behaviour_test.py ATTEST: `attest gate` as a pull request meets it: green and red, kernels and records, waivers."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

ATTEST = None
CASES = ["--match", "masking.*", "--cases", "10", "--seed", "5"]


class Gate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.cwd = cls.folder.name
        cls.attest("check", "cpu_flash", *CASES, "--out", "main", code=0)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def attest(cls, *arguments, code=None):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("GITHUB_")}
        run = subprocess.run([ATTEST, *arguments, *(["--jobs", "1", "--timeout", "60s"] if arguments[0] != "report" else [])],
                             cwd=cls.cwd, capture_output=True, text=True, timeout=500,
                             env=dict(environment, COLUMNS="80", NO_COLOR="1", LC_ALL="C"))
        if code is not None:
            assert run.returncode == code, f"{arguments}: {run.returncode}\n{run.stdout}{run.stderr}"
        for line in (run.stdout + run.stderr).splitlines():
            assert len(line) <= 80, line
        return run

    def waivers(self, **changes):
        path = os.path.join(self.cwd, "waivers.json")
        waiver = dict({"law": "masking.*", "kernel": "mutant:*", "reason": "known", "who": "me",
                       "expires": "2999-12-31"}, **changes)
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"waivers": [waiver]}, file)
        return path

    def test_a_green_and_a_red_candidate(self):
        green = self.attest("gate", "--baseline", "main", "--candidate", "cpu_flash", "--out", "green", code=0)
        self.assertIn("NOTHING WORSE", green.stdout)
        red = self.attest("gate", "--baseline", "main", "--candidate", "mutant:M001", "--out", "red", "--summary",
                          "red.txt", "--junit", "red.xml", code=1)
        self.assertIn("masking.influence  holds -> violated", red.stdout)
        self.assertIn("exit 1", red.stdout)
        with open(os.path.join(self.cwd, "red.txt"), encoding="utf-8") as file:
            self.assertIn("| worse | masking.influence | holds | violated |", file.read())
        self.assertTrue(os.path.exists(os.path.join(self.cwd, "red.xml")))
        # What was recorded can be held against each other again, and a waiver covers what it names.
        self.attest("gate", "--baseline", "main", "--candidate", "red/candidate", code=1)
        self.attest("gate", "--baseline", "red/candidate", "--candidate", "red/candidate", code=0)
        waived = self.attest("gate", "--baseline", "main", "--candidate", "red/candidate", "--waivers", self.waivers())
        self.assertIn("waived: known (me, until 2999-12-31)", waived.stdout)
        expired = self.attest("gate", "--baseline", "main", "--candidate", "red/candidate", "--waivers",
                              self.waivers(expires="2001-01-01"), code=1)
        self.assertIn("expired on 2001-01-01", " ".join(expired.stdout.split()))
        unused = self.attest("gate", "--baseline", "main", "--candidate", "red/candidate", "--waivers",
                             self.waivers(law="rank.*"), code=1)
        self.assertIn("nothing needs the waiver", unused.stdout)

    def test_two_kernels_get_the_same_cases(self):
        self.attest("gate", "--baseline", "cpu_flash", "--candidate", "cpu_flash", "--match", "masking.causal",
                    "--cases", "5", "--out", "both", code=0)
        seeds = []
        for side in ("baseline", "candidate"):
            with open(os.path.join(self.cwd, "both", side, "result.jsonl"), encoding="utf-8") as file:
                seeds.append(json.loads(file.readline())["seed"])
        self.assertEqual(seeds[0], seeds[1])

    def test_mistakes_are_one_sentence_and_exit_2(self):
        for words, arguments in (
                ("needs --baseline and --candidate", []),
                ("are the recorded run's", ["--baseline", "main", "--candidate", "cpu_flash", "--seed", "9"]),
                ("no such file", ["--baseline", "nowhere.jsonl", "--candidate", "cpu_flash"]),
                ("leave no cases", ["--baseline", "main", "--candidate", "cpu_flash", "--time", "5s"]),
                ("a factor", ["--baseline", "main", "--candidate", "cpu_flash", "--accuracy", "0.5"]),
                ("needs \"who\"", ["--baseline", "main", "--candidate", "cpu_flash", "--waivers", "bad.json"])):
            with open(os.path.join(self.cwd, "bad.json"), "w", encoding="utf-8") as file:
                file.write('{"waivers": [{"law": "a", "kernel": "b", "reason": "c"}]}')
            run = self.attest("gate", *arguments, code=2)
            self.assertEqual(run.stdout, "")
            self.assertIn(words, " ".join(run.stderr.split()))


if __name__ == "__main__":
    ATTEST = os.path.abspath(sys.argv.pop(1))
    unittest.main()
