#!/usr/bin/env python3
"""sanitizer_behaviour_test.py ATTEST ON_DEVICE: compute-sanitizer as evidence beside a cause.

ON_DEVICE holds kernels over a stand-in for the CUDA runtime. The compute-sanitizer on the PATH is a script
that runs what it is given, as the real one does, and prints what the test wants it to print.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ATTEST = ON_DEVICE = None
TOOLS = ["memcheck", "racecheck", "initcheck", "synccheck"]
BANNER = "========= COMPUTE-SANITIZER\n"
CLEAN = BANNER + "========= ERROR SUMMARY: 0 errors\n"
STRAY = (BANNER + "========= Invalid __global__ write of size 4 bytes\n"
         "=========     at flash_kernel(float *, int)+0xd0 in /src/flash.cuh:88\n"
         "=========     by thread (0,0,0) in block (0,0,0)\n"
         "=========     Access at 0x7f241b0001e0 is out of bounds\n"
         "========= Target application returned an error\n"
         "========= ERROR SUMMARY: 12 errors\n")
UNSUPPORTED = (BANNER + "========= Error: Device not supported. Please refer to the \"Supported Devices\" section of "
               "the sanitizer documentation\n========= ERROR SUMMARY: 1 error\n")
# 2026.4 where there is no driver: what it preloads ends the program before it begins.
NO_DRIVER = (BANNER + "========= Error: process didn't terminate successfully\n"
             "=========     The application may have hit an error when dereferencing Unified Memory from the host.\n"
             "========= Error: Target application terminated before first instrumented API call\n")


class Sanitizer(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.cwd = self.folder.name

    def tearDown(self):
        self.folder.cleanup()

    def install(self, says, replays=True, before=""):
        """A compute-sanitizer that prints says[tool], after the program where it replays."""
        for tool in TOOLS:
            with open(os.path.join(self.cwd, tool), "w", encoding="utf-8") as file:
                file.write(says.get(tool, CLEAN))
        script = os.path.join(self.cwd, "compute-sanitizer")
        with open(script, "w", encoding="utf-8") as file:
            file.write(f"""#!/bin/sh
                [ "$1 $3 $4" = "--tool --target-processes all" ] || exit 9
                tool=$2; shift 4
                [ "$1" != --report-api-errors ] || shift 2
                echo "$@" >> '{self.cwd}/arguments'
                {before}
                {'"$@"' if replays else ':'}
                cat "{self.cwd}/$tool"
                exit 1""")
        os.chmod(script, 0o755)

    def check(self, kernel, *more, path=None):
        environment = dict(os.environ, COLUMNS="100", NO_COLOR="1", LC_ALL="C",
                           PATH=path or f"{self.cwd}:{os.environ['PATH']}")
        run = subprocess.run([ATTEST, "check", kernel, "--seed", "1", "--cases", "2", "--match", "hygiene.bounds", *more],
                             cwd=self.cwd, env=environment, capture_output=True, text=True, timeout=200, check=False)
        self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
        with open(os.path.join(self.cwd, "attest-out", "result.jsonl"), encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
        found = [r for r in records if r["record"] == "counterexample"]
        self.assertEqual(len(found), 1)
        return run.stdout, found[0]

    def test_what_it_finds_stands_with_the_cause(self):
        self.install({"memcheck": STRAY})
        shown, record = self.check(ON_DEVICE + "#1")
        self.assertIn("  sanitizer       memcheck: Invalid __global__ write of size 4 bytes at flash.cuh:88 in\n"
                      "                  flash_kernel(float *, int) (12 errors)\n"
                      "                  racecheck, initcheck, synccheck: no errors\n", shown)
        self.assertEqual(record["problem"], "the kernel returned an error: wrote behind the pages of o")
        memcheck = record["sanitizer"][0]
        self.assertEqual(memcheck, {"tool": "memcheck", "verdict": "found", "reason": None, "errors": 12, "findings": [
            {"says": "Invalid __global__ write of size 4 bytes at flash.cuh:88", "kernel": "flash_kernel(float *, int)"}]})
        self.assertEqual([e["verdict"] for e in record["sanitizer"]], ["found", "clean", "clean", "clean"])
        with open(os.path.join(self.cwd, "arguments"), encoding="utf-8") as file:
            arguments = file.read().splitlines()
        self.assertEqual(len(arguments), 4)
        self.assertIn(f"replay {record['line']} --kernel {ON_DEVICE}#1 --law hygiene.bounds", arguments[0])
        kept = os.path.join(self.cwd, "attest-out", "sanitizer", record["id"] + ".memcheck.txt")
        with open(kept, encoding="utf-8") as file:
            text = file.read()
        self.assertIn("VIOLATED   1 of 1 law", text)  # it was the failing case that ran there
        self.assertTrue(text.endswith(STRAY))

    def not_run(self, *more, **how):
        shown, record = self.check(ON_DEVICE + "#1", *more, **how)
        self.assertEqual({e["verdict"] for e in record["sanitizer"]}, {"not_run"})
        self.assertEqual({len(e["findings"]) for e in record["sanitizer"]}, {0})
        (reason,) = {e["reason"] for e in record["sanitizer"]}
        said = " ".join(shown.split())
        self.assertIn(f"sanitizer memcheck, racecheck, initcheck, synccheck: not run: {reason}", said)
        return reason

    def test_where_it_is_not_installed_one_line_says_so(self):
        empty = os.path.join(self.cwd, "empty")
        os.mkdir(empty)
        self.assertEqual(self.not_run(path=empty), "compute-sanitizer is not on the PATH")

    def test_its_own_trouble_is_no_finding(self):
        self.install({tool: UNSUPPORTED for tool in TOOLS})
        self.assertTrue(self.not_run().startswith("Device not supported."))
        self.install({tool: NO_DRIVER for tool in TOOLS}, replays=False)
        self.assertEqual(self.not_run(), "Target application terminated before first instrumented API call")

    def test_no_errors_of_a_program_that_never_ran_is_not_clean(self):
        self.install({}, replays=False)
        self.assertEqual(self.not_run(), "the case was not replayed")

    def test_rubbish_is_not_clean(self):
        self.install({tool: "Segmentation fault\n" for tool in TOOLS}, replays=False)
        self.assertEqual(self.not_run(), "it printed no summary, but Segmentation fault")
        self.install({tool: BANNER + "========= ERROR SUMMARY: 3 errors\n" for tool in TOOLS})
        self.assertEqual(self.not_run(), "3 errors told in words that are not known")
        self.install({tool: "\x1b[2J========= \n" for tool in TOOLS}, replays=False)
        self.assertNotIn("\x1b", self.check(ON_DEVICE + "#1")[0])

    def test_an_interruption_ends_it(self):
        self.install({}, before="sleep 1000")
        run = subprocess.Popen([ATTEST, "check", ON_DEVICE + "#1", "--seed", "1", "--cases", "2", "--match",
                                "hygiene.bounds"], cwd=self.cwd, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               env=dict(os.environ, PATH=f"{self.cwd}:{os.environ['PATH']}"), text=True)
        while run.poll() is None and not os.path.exists(os.path.join(self.cwd, "arguments")):
            time.sleep(0.05)
        run.send_signal(signal.SIGINT)
        shown, _ = run.communicate(timeout=200)
        self.assertIn("not run: the run was interrupted", " ".join(shown.split()))
        self.assertEqual(run.returncode, 1)

    def test_a_kernel_in_host_memory_is_left_alone(self):
        self.install({"memcheck": STRAY})
        environment = dict(os.environ, PATH=f"{self.cwd}:{os.environ['PATH']}")
        subprocess.run([ATTEST, "check", "mutant:M001", "--seed", "7", "--cases", "9", "--match", "masking.*"],
                       cwd=self.cwd, env=environment, capture_output=True, timeout=200, check=False)
        self.assertFalse(os.path.exists(os.path.join(self.cwd, "arguments")))


if __name__ == "__main__":
    ON_DEVICE = os.path.abspath(sys.argv.pop(2))
    ATTEST = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=1)
