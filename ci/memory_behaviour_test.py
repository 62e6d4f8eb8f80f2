#!/usr/bin/env python3
"""memory_behaviour_test.py ATTEST EXAMPLES: a machine out of memory accuses nobody.

attest runs in a control group whose memory is bounded, as in a container. A right kernel for which there is not enough is
inconclusive, with a reason of its own; one that kills itself there is violated, and so is one that takes without end. Needs
the right to make such a group.
"""
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ATTEST = EXAMPLES = None
MIB = 1 << 20
# Right, and in need of 384 MiB: less than the 4 GiB that a kernel may take.
HUNGRY = """
import numpy
import numpy_attention

ATTEST = dict(numpy_attention.ATTEST, name="hungry")


def forward(*given, **named):
    held = numpy.ones(384 << 20, numpy.uint8)
    answer = numpy_attention.forward(*given, **named)
    return answer if held[-1] else None
"""


def own_folder(controller):
    """The folder of this process's group, where groups of that kind are mounted as usual."""
    with open("/proc/self/cgroup", encoding="ascii") as file:
        for line in file:
            number, controllers, path = line.rstrip("\n").split(":", 2)
            if controller in controllers.split(",") or (controller == "" and number == "0"):
                return path
    return "/"


class Group:
    """A control group of so much memory; `why` says why there is none."""

    def __init__(self, bytes_max):
        name = f"attest-test-{os.getpid()}-{bytes_max}"
        self.folder, self.why = None, "no control group for memory is mounted"
        for mounted, own, limit, no_swap in (("/sys/fs/cgroup/memory", own_folder("memory"), "memory.limit_in_bytes",
                                              "memory.memsw.limit_in_bytes"),
                                             ("/sys/fs/cgroup", own_folder(""), "memory.max", "memory.swap.max")):
            for parent in (mounted + own, mounted):
                folder = os.path.join(parent, name)
                try:
                    os.mkdir(folder)
                except OSError as failure:
                    self.why = f"no control group can be made: {failure}"
                    continue
                try:
                    self.write(folder, limit, bytes_max)
                except OSError as failure:  # the group above gives no memory controller to those in it
                    self.why = f"the memory of a control group cannot be bounded: {failure}"
                    os.rmdir(folder)
                    continue
                self.folder = folder
                try:
                    self.write(folder, no_swap, 0 if "swap.max" in no_swap else bytes_max)
                except OSError:
                    pass  # there is no swap to be bounded
                return

    @staticmethod
    def write(folder, name, value):
        with open(os.path.join(folder, name), "r+", encoding="ascii") as file:
            file.write(str(value))

    def enter(self):
        self.write(self.folder, "cgroup.procs", os.getpid())

    def remove(self):
        for _ in range(100):  # what ended may not have left yet
            try:
                return os.rmdir(self.folder)
            except OSError:
                time.sleep(0.05)


class Memory(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cwd = folder.name
        with open(os.path.join(self.cwd, "hungry.py"), "w", encoding="utf-8") as file:
            file.write(HUNGRY)
        self.environment = dict(os.environ, COLUMNS="200", NO_COLOR="1", LC_ALL="C",
                                PYTHONPATH=os.path.join(ROOT, "kernels", "examples") + ":" + self.cwd)

    def within(self, megabytes, kernel, *arguments, code):
        group = Group(megabytes * MIB)
        if group.folder is None:
            self.skipTest(group.why)
        self.addCleanup(group.remove)
        run = subprocess.run([ATTEST, "check", kernel, "--seed", "7", "--jobs", "1", "--cases", "4", *arguments],
                             cwd=self.cwd, capture_output=True, text=True, timeout=300, env=self.environment, check=False,
                             preexec_fn=group.enter)
        self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        return run.stdout + run.stderr

    def laws(self):
        with open(os.path.join(self.cwd, "attest-out", "result.jsonl"), encoding="utf-8") as file:
            return [record for record in map(json.loads, file) if record["record"] == "law"]

    @staticmethod
    def example(stem, name):
        for number in range(40):
            kernel = f"{EXAMPLES}/lib{stem}.so#{number}"
            run = subprocess.run([ATTEST, "describe", kernel], capture_output=True, text=True, check=True)
            if json.loads(run.stdout)["name"] == name:
                return kernel
        return None

    def test_a_right_kernel_without_memory_is_inconclusive(self):
        hungry = ["--match", "reference.*", "--match", "probability.*", "--python", "/usr/bin/python3"]
        self.within(2048, "python:hungry", *hungry, code=0)
        said = self.within(300, "python:hungry", *hungry, code=3)
        self.assertNotIn("VIOLATED", said)
        self.assertIn("the machine, or its container, ran out of memory, and the system killed the kernel: judge it with more "
                      "memory, with --jobs 1 or in a smaller --profile", " ".join(said.split()))
        asked = [law for law in self.laws() if law.get("reason_kind") == "no_memory"]
        self.assertEqual([(law["verdict"], law["cases"]) for law in asked], [("inconclusive", 2)] * 3)

    def test_a_kernel_that_kills_itself_there_is_violated(self):
        said = self.within(300, self.example("hostile", "kill_itself"), "--match", "reference.output", code=1)
        self.assertIn("the machine had memory left", " ".join(said.split()))

    def test_a_kernel_that_takes_without_end_is_violated(self):
        allowed, beside = 4096, 1024
        with open("/proc/meminfo", encoding="ascii") as file:
            available = next(int(line.split()[1]) for line in file if line.startswith("MemAvailable"))
        if available // 1024 < 2 * (allowed + beside):
            self.skipTest("this machine has too little memory left to give away 5 GiB")
        said = self.within(allowed + beside, self.example("hoards", "allocate_without_end"), "--match", "reference.output",
                           code=1)
        self.assertIn("ran out of memory: 4 GiB are allowed", " ".join(said.split()))


if __name__ == "__main__":
    EXAMPLES = os.path.abspath(sys.argv.pop())
    ATTEST = os.path.abspath(sys.argv.pop())
    unittest.main(verbosity=1)
