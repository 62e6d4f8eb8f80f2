#!/usr/bin/env python3
"""merge_behaviour_test.py ATTEST: ten shards come to one run, and what is no whole campaign is refused."""
import json
import os
import random
import re
import shutil
import sys
import unittest

import certificate_behaviour_test as shared


def without_times(data):
    """Bytes of records or of a certificate without the values that are times, and those that are digests of bytes with times."""
    digest = rb'"(result_sha256)": ?"[0-9a-f]{64}"|(?<="record":"end",)("seconds":[^,]*,"sha256"):"[0-9a-f]{64}"'
    return re.sub(rb'"(started|at|seconds)": ?("[^"]*"|[-+.e0-9]+)', rb'"\1"', re.sub(digest, b"", data))


class Shards(shared.Campaign):
    def shards(self, count, *arguments):
        for index in range(count):
            self.attest(*arguments, "--shard", f"{index}/{count}", "--out", f"shard-{index}")
        return [f"shard-{index}" for index in range(count)]

    def test_ten_shards_are_one_run(self):
        for kernel, code in (("cpu_naive", 0), ("mutant:M001", 1)):
            run = ["check", kernel, "--seed", "5", "--profile", "small.json", "--cases", "20", "--record", "cases"]
            shutil.rmtree(self.path("attest-out"), ignore_errors=True)
            self.attest(*run, code=code)
            folders = self.shards(10, *run)
            random.Random(3).shuffle(folders)
            self.attest("merge", *folders, "--out", "merged", code=code)

            if code == 0:
                one, ten = (without_times(self.bytes_of(folder, "result.jsonl")) for folder in ("attest-out", "merged"))
                self.assertEqual(sorted(one.splitlines()), sorted(ten.splitlines()))
                # A run writes cases as they end, merge writes them in order: of one run, too.
                self.attest("merge", "attest-out", "--out", "ordered", code=0)
                self.assertEqual(without_times(self.bytes_of("ordered", "result.jsonl")), ten)
                self.assertGreater(len(ten), 0.9 * len(self.bytes_of("merged", "result.jsonl")))
            else:  # what is found out about a failure hangs on what a shard has seen
                laws = [[(r["law"], r["verdict"], r["cases"], r["violated"], r["elements"])
                         for r in self.records(folder) if r["record"] == "law"] for folder in ("attest-out", "merged")]
                self.assertEqual(sorted(laws[0]), sorted(laws[1]))
                lead = next(r["lead"] for r in self.records("merged") if r["record"] == "cause")
                self.attest("replay", lead, "--out", "merged", code=1)

    def test_what_is_no_whole_campaign_is_refused(self):
        run = ["check", "cpu_naive", "--profile", "small.json", "--match", "masking.*"]
        folders = self.shards(3, *run, "--seed", "5")

        def refused(*merged):
            error = self.attest("merge", *merged, "--out", "no whole", code=2).stderr
            self.assertFalse(os.path.exists(self.path("no whole")))
            return shared.words(error)
        self.assertIn("of 3 shards these are missing: 1", refused("shard-0", "shard-2"))
        self.assertIn("shard 1/3 is there twice", refused(*folders, "shard-1"))
        self.assertIn("these are shards of attest check", refused(*folders, "--sign", "key"))

        def other(*arguments):
            self.attest(*arguments, "--shard", "1/3", "--out", "another")
            return refused("shard-0", "another", "shard-2")
        self.assertIn("another seed", other(*run, "--seed", "6"))
        self.assertIn("another kernel", other("check", "cpu_flash", *run[2:], "--seed", "5"))
        self.assertIn("other laws or cases", other(*run, "--seed", "5", "--cases", "2"))
        self.assertIn("another profile", other("check", "cpu_naive", "--profile", "quick", "--match", "masking.*",
                                               "--cases", "2", "--seed", "5"))
        records = self.records("shard-1")
        self.assertEqual(records[0]["shard"], {"count": 3, "index": 1})
        with open(self.path("shard-1", "result.jsonl"), "r+b") as file:
            file.seek(-200, os.SEEK_END)
            file.write(b"#")
        self.assertIn("shard-1/result.jsonl", refused(*folders))
        self.assertIn("is one of the shards", shared.words(self.attest("merge", "shard-0", "--out", "shard-0", code=2).stderr))

    def test_shards_of_a_certificate_are_one(self):
        folders = self.shards(3, "certify", "cpu_naive", "--profile", "small.json", "--seed", "7")
        self.attest("verify", folders[0], code=3)
        self.attest("merge", *folders, "--out", "joined", "--sign", "key", code=0)
        self.attest("verify", "joined", "--public-key", "key.pub", code=0)
        self.attest("certify", "cpu_naive", "--profile", "small.json", "--seed", "7", "--out", "whole", code=0)
        self.attest("merge", "whole", "--out", "ordered", code=0)
        for name in ("result.jsonl", "certificate.json"):
            one, three = (without_times(self.bytes_of(folder, name)) for folder in ("ordered", "joined"))
            self.assertEqual(one, three, name)


if __name__ == "__main__":
    shared.ATTEST = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
