#!/usr/bin/env python3
"""kill_behaviour_test.py ATTEST: a kill loses nothing that was told before it, and accuses nobody.

The command is killed where it cannot say goodbye, at several moments: every line that it had printed to replay a failure
does so, every stored failure and every law that was done is there, and the run goes on to the verdict that it would have
had. Its workers are killed, as a machine out of memory does: a right kernel holds.
"""
import glob
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ATTEST = None
WRONG = ["check", "mutant:M001", "--seed", "7", "--cases", "12", "--match", "masking.*", "--match", "probability.*",
         "--match", "reference.*"]


def descendants(parent):
    """Of all its threads: one of them starts the workers."""
    found = []
    for file in glob.glob(f"/proc/{parent}/task/*/children"):
        try:
            with open(file, encoding="ascii") as children:
                found += [int(child) for child in children.read().split()]
        except OSError:
            pass  # that thread has ended
    return found + [one for child in found for one in descendants(child)]


class Kills(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cwd = folder.name
        self.environment = dict(os.environ, COLUMNS="200", NO_COLOR="1", LC_ALL="C")

    def path(self, *parts):
        return os.path.join(self.cwd, *parts)

    def start(self, *arguments, said):
        with open(self.path(said), "w", encoding="utf-8") as file:
            return subprocess.Popen([ATTEST, *arguments], cwd=self.cwd, stdout=file, stderr=subprocess.STDOUT,
                                    env=self.environment)

    def text(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def attest(self, *arguments, code):
        run = subprocess.run([ATTEST, *arguments], cwd=self.cwd, capture_output=True, text=True, timeout=300,
                             env=self.environment, check=False)
        self.assertEqual(run.returncode, code, f"{arguments}\n{run.stdout}{run.stderr}")

    def laws(self, folder):
        """Verdicts of the laws that are done; the last line may be half."""
        lines = self.text(os.path.join(folder, "result.jsonl")).splitlines(keepends=True)
        records = [json.loads(line) for line in lines if line.endswith("\n")]
        return {record["law"]: record["verdict"] for record in records if record["record"] == "law"}

    def has_told(self, said, times):
        return len(re.findall(r"attest replay \w+", self.text(said))) >= times

    def has_done(self, folder, count):
        return os.path.exists(self.path(folder, "result.jsonl")) and len(self.laws(folder)) >= count

    def killed_when(self, moment, folder, said):
        run = self.start(*WRONG, "--out", folder, said=said)
        while run.poll() is None and not moment():
            time.sleep(0.002)
        run.kill()
        self.assertEqual(run.wait(), -signal.SIGKILL, f"it had ended before {folder}")

    def test_what_was_told_is_replayed_and_the_run_goes_on(self):
        self.attest(*WRONG, "--out", "whole", code=1)
        whole, told = self.laws("whole"), 0
        moments = {"at_its_start": lambda: os.path.exists(self.path("at_its_start", "result.jsonl")),
                   "with_one_case": lambda: os.path.isdir(self.path("with_one_case", "cases")),
                   "when_it_tells": lambda: self.has_told("when_it_tells.txt", 1),
                   "with_five_laws": lambda: self.has_done("with_five_laws", 5),
                   "with_half_the_laws": lambda: self.has_done("with_half_the_laws", len(whole) // 2),
                   "with_most_laws": lambda: self.has_done("with_most_laws", len(whole) * 3 // 4)}
        for folder, moment in moments.items():
            with self.subTest(folder):
                said = folder + ".txt"
                self.killed_when(moment, folder, said)
                done, stored = self.laws(folder), os.path.join(folder, "cases")
                before = [name for name in os.listdir(self.path(stored)) if name.endswith(".json")] \
                    if os.path.isdir(self.path(stored)) else []
                for name in before:
                    json.loads(self.text(os.path.join(stored, name)))
                for case in set(re.findall(r"attest replay (\w+) --kernel mutant:M001", self.text(said))):
                    told += 1
                    self.attest("replay", case, "--kernel", "mutant:M001", "--out", folder, code=1)
                for name in before[:2]:
                    self.attest("replay", self.path(stored, name), "--kernel", "mutant:M001", code=1)
                self.attest("check", "--resume", folder, code=1)
                after = self.laws(folder)
                self.assertEqual(after, whole)
                self.assertEqual({law: after[law] for law in done}, done)
        self.assertGreater(told, 2)

    def test_killed_workers_accuse_nobody(self):
        chance = random.Random(7)
        run = self.start("check", "cpu_naive", "--seed", "7", "--cases", "60", "--match", "masking.*", "--match", "hygiene.*",
                         "--match", "reference.*", "--out", "out", said="said")
        kills = 0
        while run.poll() is None and not os.path.exists(self.path("out", "result.jsonl")):
            time.sleep(0.01)
        # Seldom enough that no call meets three of them.
        while run.poll() is None and kills < 12:
            time.sleep(chance.uniform(0.8, 1.2))
            victims = descendants(run.pid)
            if victims:
                try:
                    os.kill(chance.choice(victims), signal.SIGKILL)
                    kills += 1
                except ProcessLookupError:
                    pass
        run.wait()
        self.assertEqual(run.returncode, 0, self.text("said"))
        self.assertGreater(kills, 2)


if __name__ == "__main__":
    ATTEST = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=1)
