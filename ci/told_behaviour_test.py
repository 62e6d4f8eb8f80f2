#!/usr/bin/env python3
"""told_behaviour_test.py ATTEST: what a person is told that nothing else says: what was left out, cut, not written or not given."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

ATTEST = None
ONE = ["--match", "masking.causal", "--seed", "5", "--timeout", "60s"]


class Told(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cwd = folder.name

    def attest(self, *arguments, code=0):
        run = subprocess.run([ATTEST, *arguments], cwd=self.cwd, capture_output=True, text=True, timeout=300,
                             env=dict(os.environ, COLUMNS="80", NO_COLOR="1", LC_ALL="C"))
        self.assertEqual(run.returncode, code, f"{arguments}\n{run.stdout}{run.stderr}")
        return " ".join((run.stdout + run.stderr).split())

    def test_a_law_that_the_profile_leaves_out_is_not_said_to_apply_to_no_kernel(self):
        said = self.attest("check", "cpu_naive", "--match", "hygiene.many_calls", code=3)
        self.assertIn("profile quick leaves out hygiene.many_calls, which was asked for: another profile", said)
        self.assertIn("INCONCLUSIVE no law was judged", said)
        self.assertNotIn("0 inconclusive", said)

    def test_options_that_cut_a_run_are_named_where_they_did(self):
        said = self.attest("check", "cpu_naive", *ONE, "--cases", "3")
        self.assertIn("tried at most 3 cases of each law (--cases), beside fixtures, where profile quick has 120", said)
        self.assertIn("tried as many cases of each law as 1.0 s allow (--time)", self.attest("check", "cpu_naive", *ONE, "--time", "1s"))
        self.assertIn("1.0 s allow (--time), and at most 3 (--cases), where",
                      " ".join(self.attest("check", "cpu_naive", *ONE, "--time", "1s", "--cases", "3").split()))
        self.assertNotIn("tried ", self.attest("check", "cpu_naive", *ONE, "--cases", "120"))
        said = self.attest("check", "mutant:M001", "--match", "masking.*", "--seed", "5", "-x", code=1)
        self.assertIn("stopped -x ended the run with its first violation", said)
        self.assertNotIn("interrupted", said)

    def test_the_profile_of_each_command_is_in_its_help(self):
        for command, profile in (("check", "quick"), ("certify", "serving"), ("gate", "quick")):
            self.assertIn(f"a name or a .json file ({profile})", self.attest(command, "--help"))
        self.assertIn("fixtures come on top", self.attest("check", "--help"))

    def test_a_bug_of_laws_that_were_not_chosen_is_beyond_them_and_one_of_theirs_is_a_fault(self):
        said = self.attest("audit", "M001", "--match", "rank.heads", "--cases", "1")
        self.assertIn("0 of 1 planted bug seen by a law", said)
        self.assertIn("1 planted bug beyond the chosen laws (--match): its row names none of them", said)
        self.assertIn("no fault exit 0", said)
        said = self.attest("audit", "M001", "--match", "masking.alignment", "--cases", "1", "--seed", "3", code=1)
        self.assertNotIn("beyond", said)

    def test_a_shard_is_a_part_and_a_run_without_records_is_not_to_be_resumed(self):
        shard = self.attest("certify", "cpu_naive", *ONE, "--profile", "quick", "--shard", "0/3", "--out", "part", code=3)
        self.assertIn("shard 0/3, holds: a part of a campaign, not a certificate; attest merge joins the parts", shard)
        self.attest("check", "cpu_naive", *ONE, "--cases", "1", "--out", "plain")
        said = self.attest("merge", "plain", code=2)
        self.assertIn("run it again: attest certify cpu_naive --shard i/n", said)
        self.assertNotIn("--resume", said)

    def test_what_was_not_written_and_not_given_is_said(self):
        self.assertNotIn("nothing written", self.attest("new", "c", "tinyk"))
        self.assertIn("nothing written: these files are there", self.attest("new", "c", "tinyk"))
        self.assertIn("--env NO_SUCH_ONE: is not set here", self.attest("check", "cpu_naive", *ONE, "--cases", "1", "--env", "NO_SUCH_ONE"))

    def test_a_run_that_kept_nothing_is_run_again_and_not_resumed(self):
        os.mkdir(os.path.join(self.cwd, "full"))
        os.symlink("/dev/full", os.path.join(self.cwd, "full", "result.jsonl.new"))
        said = self.attest("check", "cpu_naive", *ONE, "--out", "full", code=4)
        self.assertIn("after 0 records", said)
        self.assertIn("free space and run it again", said)

    def test_stored_failures_of_a_kernel_are_found_where_another_was_judged_since(self):
        link = os.path.join(self.cwd, "py")
        os.symlink("/usr/bin/python3", link)
        for name, law in (("one", "reference.output"), ("two", "probability.row_sum")):
            with open(os.path.join(self.cwd, name + ".py"), "w", encoding="utf-8") as file:
                file.write(f'ATTEST = {{"name": "{name}", "version": "1", "formats": ["f32"], "features": ["causal"]}}\n\n\n'
                           'def forward(problem, q, k, v, o, **_):\n    o[...] = 0\n')
            said = self.attest("check", "python:" + name, "--match", law, "--seed", "5", "--timeout", "60s", "--python", link, code=1)
            self.assertIn(f"--kernel python:{name} --python py", said)  # the link, by which an interpreter finds its packages
        said = self.attest("replay", "--kernel", "python:one", "--timeout", "60s", code=1)
        self.assertIn("known failures: 0 of 1 fixed exit 1", said)

    def test_a_manifest_is_described_with_every_default_that_has_a_word(self):
        run = subprocess.run([ATTEST, "describe", "mutant:M001"], cwd=self.cwd, capture_output=True, text=True, check=True)
        manifest = json.loads(run.stdout)
        self.assertEqual(manifest["dialect"]["empty_lse"], "-inf")
        for key, value in (("concurrent", True), ("centred_keys", False), ("centred_values", False), ("dropout_levels", 0)):
            self.assertEqual(manifest["numerics"][key], value, key)

    def test_which_laws_a_kernel_can_be_asked_is_told_before_a_run(self):
        said = self.attest("describe", "cpu_decode", "--laws")
        self.assertIn("masking.causal can be asked", said)
        self.assertIn("gradients.differences kernel has no backward", said)
        can, of = map(int, re.search("([0-9]+) of ([0-9]+) laws can be asked", said).groups())
        self.assertEqual(len(re.findall(r"[a-z_]+\.[a-z_]+ can be asked", said)), can)
        self.assertNotIn("●", said)  # which says that a law holds
        self.assertLess(can, of)

    def test_a_digit_with_which_stored_cases_begin_is_not_a_word_of_a_line(self):
        self.attest("check", "mutant:M001", *ONE, "--record", "cases", code=1)
        with open(os.path.join(self.cwd, "attest-out", "result.jsonl"), encoding="utf-8") as file:
            ids = [record["id"] for record in map(json.loads, file) if record["record"] == "case"]
        digit = max("0123456789", key=lambda d: sum(one.startswith(d) for one in ids))
        self.assertRegex(self.attest("explain", digit, "--kernel", "mutant:M001", code=2), f"attest: {digit}: [0-9]+ stored cases have ids that begin with it: ")


if __name__ == "__main__":
    ATTEST = os.path.abspath(sys.argv.pop(1))
    unittest.main()
