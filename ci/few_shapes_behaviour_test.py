#!/usr/bin/env python3
"""few_shapes_behaviour_test.py ATTEST: a campaign of few shapes, together with all that is done with campaigns.

Under many seeds it ends with a verdict; it is certified and verified, goes on where it was cut with the same shapes, is held
against another, and its shards come to one run. And a line of any feature is tried under every law that it is a case of.
"""
import json
import os
import sys
import unittest

import certificate_behaviour_test as shared
from merge_behaviour_test import without_times

PROFILE = {"name": "few", "version": 1, "cases_per_law": 8, "undrawn_pairs_max": 100000, "reach": {},
           "laws": ["reference.output", "masking.*", "decode.*", "partition.*", "hygiene.deterministic"]}
SHAPES = ["--profile", "few.json", "--shapes", "9"]
LINES = """
b1 hq1 hkv1 tq3 tk3 d4 f64
b2 hq4 hkv2 tq5 tk7 d8 dv6 causal f16
b1 hq2 hkv1 tq4 tk8 d4 window 3 -1 f32
b1 hq2 hkv1 tq4 tk8 d4 causal window 3 2 sink f32
b2 hq1 hkv1 tq4 tk8 d4 lens_q 3,4 lens_kv 3,8 bf16
b1 hq1 hkv1 tq7 tk9 d4 docs_q 3,4 docs_kv 4,5 f32
b1 hq1 hkv1 tq4 tk8 d4 mask bool f32
b1 hq1 hkv1 tq4 tk8 d4 mask additive softcap 4 f32
b1 hq2 hkv1 tq8 tk8 d4 alibi f32
b1 hq2 hkv1 tq8 tk8 d4 causal rope half f32
b2 hq1 hkv1 tq6 tk6 d4 alibi lens_q 3,6 lens_kv 3,6 f32
b3 hq2 hkv1 tq6 tk6 d4 causal rope half lens_q 3,6,0 lens_kv 3,6,0 f32 grad
b1 hq1 hkv1 tq2 tk8 d4 causal cache 6 f32
b1 hq1 hkv1 tq1 tk40 d4 causal cache 39 page 16 f32
b1 hq1 hkv1 tq1 tk40 d4 causal window 7 -1 cache 39 ring f32
b1 hq2 hkv1 tq1 tk40 d4 causal alibi cache 39 f32
b1 hq1 hkv1 tq2 tk8 d4 causal rope half cache 6 f32
"""


class FewShapes(shared.Campaign):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with open(cls.cwd + "/few.json", "w", encoding="utf-8") as file:
            json.dump(PROFILE, file)

    def laws(self, folder):
        return {r["law"]: (r["verdict"], r["cases"]) for r in self.records(folder) if r["record"] == "law"}

    def told(self, folder):
        """What the result says of its shapes."""
        found = [line for line in json.dumps(self.records(folder)).split('"') if line.startswith("shapes: ")]
        self.assertTrue(found, f"nothing is said of shapes in {folder}")
        return found[-1]

    def test_any_seed_ends_with_a_verdict(self):
        for seed in range(1, 6):
            with self.subTest(seed):
                self.attest("check", "cpu_naive", *SHAPES, "--seed", str(seed), "--out", f"seed-{seed}", code=0)

    def test_it_is_certified_and_verified(self):
        self.attest("certify", "cpu_naive", *SHAPES, "--seed", "5", "--out", "cert", code=3)
        self.assertIn("(--shapes)", self.told("cert"))
        verified = self.attest("verify", "cert", "--kernel", "cpu_naive", "--rerun", "60", "--seed", "1", code=3).stdout
        self.assertIn("follows from", verified)
        self.assertIn("60 numbers drawn and judged again", verified)

    def test_it_goes_on_where_it_was_cut(self):
        run = ["check", "cpu_naive", *SHAPES, "--seed", "5", "--record", "cases"]
        self.attest(*run, "--out", "cut", code=0)
        whole, told = self.laws("cut"), self.told("cut")
        path = self.path(os.path.join("cut", "result.jsonl"))
        with open(path, encoding="utf-8") as file:
            lines = file.readlines()
        at = [n for n, line in enumerate(lines) if json.loads(line)["record"] == "law"][3]
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(lines[:at])
        self.attest("check", "--resume", "cut", code=0)
        self.assertEqual(self.laws("cut"), whole)
        self.assertEqual(self.told("cut").split(" of ")[1], told.split(" of ")[1])

    def test_ten_shards_are_one_run(self):
        for kernel, code in (("cpu_naive", 0), ("mutant:M001", 1)):
            with self.subTest(kernel):
                run = ["check", kernel, *SHAPES, "--seed", "5", "--record", "cases"]
                whole, merged = "whole" + kernel[-4:], "merged" + kernel[-4:]
                self.attest(*run, "--out", whole, code=code)
                parts = [f"part-{kernel[-4:]}-{n}" for n in range(10)]
                for n, part in enumerate(parts):
                    self.attest(*run, "--shard", f"{n}/10", "--out", part)
                self.attest("merge", *reversed(parts), "--out", merged, code=code)
                self.assertEqual(self.laws(merged), self.laws(whole))
                if code == 0:
                    self.attest("merge", whole, "--out", "ordered", code=0)
                    one, ten = (without_times(self.bytes_of(folder, "result.jsonl")) for folder in ("ordered", merged))
                    self.assertEqual(one, ten)
                    self.assertGreater(self.told(merged), min(map(self.told, parts)))

    def test_shards_of_other_shapes_stay_apart(self):
        run = ["check", "cpu_naive", *SHAPES, "--seed", "5", "--match", "masking.*"]
        self.attest(*run, "--shard", "0/2", "--out", "one", code=0)
        # A failure that its folder holds is among the shapes of the other.
        self.attest("check", "mutant:M001", *SHAPES, "--seed", "8", "--match", "masking.*", "--out", "other", code=1)
        self.attest(*run, "--shard", "1/2", "--out", "other", code=0)
        error = shared.words(self.attest("merge", "one", "other", "--out", "joined", code=2).stderr)
        self.assertIn("is of other shapes than", error)

    def test_it_is_held_against_another(self):
        run = ["check", "cpu_naive", *SHAPES, "--seed", "5"]
        self.attest(*run, "--out", "baseline", code=0)
        self.attest("gate", "--baseline", "baseline", "--candidate", "cpu_naive", "--out", "same", code=0)
        self.attest("gate", "--baseline", "baseline", "--candidate", "mutant:M001", "--out", "worse", code=1)

    def test_a_line_is_tried_under_every_law(self):
        for line in LINES.split("\n"):
            if line:
                with self.subTest(line):
                    self.attest("replay", line, "--kernel", "cpu_naive", code=0)


if __name__ == "__main__":
    shared.ATTEST = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=1)
