#!/usr/bin/env python3
"""strangers_test.py ATTEST FOLDER: CUDA kernels written without our headers, judged on this CPU.

The naive and the tiled one hold, fast and checked. The tiled one without its first barrier is caught, with the
lines of the source as it was written, and with the numbers alone where no access is checked.
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

ATTEST = FOLDER = None


class Strangers(unittest.TestCase):
    def judge(self, library, *more):
        with tempfile.TemporaryDirectory() as out:
            environment = dict(os.environ, COLUMNS="200", NO_COLOR="1", LC_ALL="C")
            return subprocess.run([ATTEST, "check", os.path.join(FOLDER, library), "--seed", "7", "--out", out, *more],
                                  capture_output=True, text=True, timeout=500, env=environment, check=False)

    def test_the_right_ones_hold(self):
        for library in ("attention_naive.so", "attention_naive_checked.so", "attention_tiled.so",
                        "attention_tiled_checked.so"):
            with self.subTest(library):
                run = self.judge(library, "--cases", "8")
                self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
                self.assertIn("HOLDS", run.stdout)

    def test_a_race_is_named_by_its_lines(self):
        run = self.judge("attention_racy_checked.so", "--cases", "8", "--match", "hygiene.diagnostics")
        self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
        found = re.search(r"shared_race: .* race on ([kv])_tile: attention_racy.cu:(\d+) .* and attention_racy.cu:(\d+)",
                          run.stdout)
        self.assertIsNotNone(found, run.stdout)
        with open(os.path.join(FOLDER, "attention_racy.cu"), encoding="utf-8") as file:
            lines = file.read().splitlines()
        for number in found.groups()[1:]:
            self.assertIn(f"{found.group(1)}_tile[j][d]", lines[int(number) - 1])

    def test_the_schedule_shows_it_too(self):
        run = self.judge("attention_racy.so", "--cases", "8", "--match", "hygiene.schedule")
        self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
        self.assertIn("depends on the order of threads", run.stdout)


if __name__ == "__main__":
    FOLDER = os.path.abspath(sys.argv.pop(2))
    ATTEST = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=1)
