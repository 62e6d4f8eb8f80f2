#!/usr/bin/env python3
"""trouble_behaviour_test.py ATTEST EXAMPLES: whatever happens to a run, what it found is kept and told.

Kernels that die where no call is under way or ask for all memory, files that are none, a reader that goes away, a
terminal that closes, two runs in one folder, a run that is resumed.
"""
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ATTEST = EXAMPLES = None
QUICK = ["--seed", "7", "--cases", "6", "--match", "reference.output"]


class Trouble(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.cwd = self.folder.name
        self.environment = dict(os.environ, COLUMNS="200", NO_COLOR="1", LC_ALL="C",
                                HOSTILE_FILE=os.path.join(self.cwd, "loads"))

    def tearDown(self):
        self.folder.cleanup()

    def attest(self, *arguments, code):
        run = subprocess.run([ATTEST, *arguments], cwd=self.cwd, capture_output=True, text=True, timeout=300,
                             env=self.environment, check=False)
        self.assertEqual(run.returncode, code, f"{arguments}\n{run.stdout}{run.stderr}")
        return run.stdout + run.stderr

    def path(self, *parts):
        return os.path.join(self.cwd, "attest-out", *parts)

    def records(self):
        with open(self.path("result.jsonl"), encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def write_records(self, records):
        with open(self.path("result.jsonl"), "w", encoding="utf-8") as file:
            file.writelines(json.dumps(record) + "\n" for record in records)

    def hostile(self, name):
        """The kernel of this name, by its number."""
        for number in range(40):
            kernel = f"{EXAMPLES}/libhostile.so#{number}"
            if os.path.exists(self.environment["HOSTILE_FILE"]):
                os.remove(self.environment["HOSTILE_FILE"])
            run = subprocess.run([ATTEST, "describe", kernel], cwd=self.cwd, capture_output=True, text=True, check=True,
                                 env=self.environment)
            if json.loads(run.stdout)["name"] == name:
                if os.path.exists(self.environment["HOSTILE_FILE"]):
                    os.remove(self.environment["HOSTILE_FILE"])
                return kernel
        return None

    def test_the_least_of_kernels_holds(self):
        shutil.copy(os.path.join(ROOT, "kernels", "examples", "dense_attention.py"), self.cwd)
        least = ["--seed", "7", "--cases", "3", "--python", "/usr/bin/python3"]
        said = self.attest("check", "python:dense_attention", *least, code=0)
        self.assertIn("calls without keys: refused (it returns an error:", said)
        with open(os.path.join(self.cwd, "on_device.py"), "w", encoding="utf-8") as file:
            file.write("from dense_attention import ATTEST, forward\nATTEST['memory'] = 'cuda'\n")
        self.assertIn("only a library is handed device memory",
                      self.attest("check", "python:on_device", *least, code=2))

    def test_one_defect_is_one_cause_under_dropout_too(self):
        said = self.attest("check", "mutant:M001", "--seed", "3", "--match", "masking.influence", "--match",
                           "reference.dropout", code=1)
        self.assertIn("2 of 2 laws, 1 cause", said)

    def test_a_stored_case_may_be_sent_to_somebody(self):
        self.attest("check", "mutant:M001", *QUICK[:4], "--match", "masking.influence", code=1)
        shutil.copy(self.path("cases", sorted(os.listdir(self.path("cases")))[0]), os.path.join(self.cwd, "sent.json"))
        self.assertIn("masking.influence", self.attest("replay", "sent.json", code=1))

    def test_a_whole_part_that_is_resumed_loses_no_law(self):
        self.attest("check", "cpu_naive", *QUICK, code=0)
        laws = [record["law"] for record in self.records() if record["record"] == "law"]
        self.attest("check", "--resume", "attest-out", code=0)
        self.assertEqual(sorted(record["law"] for record in self.records() if record["record"] == "law"), sorted(laws))

    def test_a_helper_that_is_killed_is_started_again(self):
        worker = os.path.join(os.path.dirname(EXAMPLES), "worker")
        script = os.path.join(self.cwd, "attest_worker")
        for kills, code in ((1, 0), (9, 4)):
            with open(script, "w", encoding="utf-8") as file:
                file.write(f"#!/bin/sh\necho >> {self.cwd}/starts{kills}\n"
                           f"[ $(wc -l < {self.cwd}/starts{kills}) -gt {kills} ] || kill -9 $$\n"
                           f'exec {worker}/attest_worker "$@"\n')
            os.chmod(script, 0o755)
            self.environment["ATTEST_WORKER_DIR"] = self.cwd
            self.attest("list", "kernels", code=code)
        self.environment.pop("ATTEST_WORKER_DIR")

    def test_a_worker_without_its_kernels_is_named(self):
        shutil.copy(os.path.join(os.path.dirname(EXAMPLES), "worker", "attest_worker"), self.cwd)
        self.environment["ATTEST_WORKER_DIR"] = self.cwd
        self.assertIn("attest_builtin.so is not beside attest_worker; ci/build makes it",
                      self.attest("list", "kernels", code=4))
        self.environment.pop("ATTEST_WORKER_DIR")

    def test_a_death_outside_a_call_is_a_finding(self):
        said = self.attest("check", f"{EXAMPLES}/libmisbehaving.so#21", *QUICK, code=1)
        self.assertIn("wrote to address 0x8, which is in no tensor inside supports()", said)
        self.assertEqual(self.records()[-1]["exit"], 1)

    def test_a_workspace_of_a_tebibyte_is_a_finding(self):
        for name, size in (("one_tebibyte", "1 TiB"), ("four_exbibytes", "4 EiB"), ("all_there_is", "16 EiB")):
            said = self.attest("check", self.hostile(name), *QUICK, code=1)
            self.assertIn(f"the kernel asked for a workspace of {size}: 4 GiB are allowed", said)

    def test_a_kernel_that_cannot_be_loaded_again_ends_the_run_in_order(self):
        said = self.attest("check", self.hostile("fail_from_load_2"), "--env", "HOSTILE_FILE", *QUICK, code=3)
        self.assertIn("create() failed with code 9: the device is taken", said)
        end = self.records()[-1]
        self.assertEqual((end["record"], end["exit"]), ("end", 3))
        self.assertIn("create() failed", end["ended"])
        self.attest("check", self.hostile("fail_at_load_2"), "--env", "HOSTILE_FILE", *QUICK, code=1)  # tried again, it is killed in each call

    def test_what_is_no_case_is_told_and_the_rest_goes_on(self):
        os.makedirs(self.path("cases"))
        os.mkfifo(self.path("cases", "pipe.json"))
        with open(self.path("cases", "deep.json"), "w", encoding="utf-8") as file:
            file.write("[" * 200_000)
        with open(self.path("cases", "broken.json"), "w", encoding="utf-8") as file:
            file.write("{")
        said = self.attest("check", "cpu_naive", *QUICK, code=0)
        self.assertIn("pipe.json: is no file", said)
        self.assertIn("deep.json:1:33: nested too deep", said)
        self.assertIn("broken.json:1:", said)
        self.assertEqual(len(self.records()[-1]["unread"]), 3)
        self.assertIn("deep.json:1:33: nested too deep", self.attest("replay", self.path("cases", "deep.json"), code=2))

    def test_a_record_of_another_type_is_pointed_at(self):
        self.attest("check", "cpu_naive", *QUICK, code=0)
        good = self.records()
        law = next(n for n, record in enumerate(good) if record["record"] == "law")

        def broken(line, change):
            records = [dict(record) for record in good]
            change(records[line])
            self.write_records(records)
            self.assertIn(f"result.jsonl:{line + 1}:", self.attest("check", "--resume", "attest-out", code=2))
        broken(0, lambda r: r.update(v="1"))
        broken(0, lambda r: r.pop("argv"))
        broken(0, lambda r: r.update(argv="check"))
        broken(0, lambda r: r.update(seed=7))
        broken(law, lambda r: r.pop("verdict"))
        broken(law, lambda r: r.update(cases=-1))
        with open(self.path("result.jsonl"), "w", encoding="utf-8") as file:
            file.write("[" * 200_000 + "\n")
        self.assertIn("nested too deep", self.attest("check", "--resume", "attest-out", code=2))

    def test_a_reader_that_has_had_enough_is_no_error(self):
        def piped(command):
            run = subprocess.run(["bash", "-c", f"{command}; echo ${{PIPESTATUS[0]}}"], cwd=self.cwd, text=True,
                                 capture_output=True, env=self.environment, check=False)
            return run.stdout.splitlines()[-1]
        self.assertEqual(piped(f"'{ATTEST}' list laws | true"), "0")
        self.assertEqual(piped(f"'{ATTEST}' check mutant:M001 --seed 7 --cases 6 --match masking.causal | true"), "1")
        self.assertEqual(self.records()[-1]["exit"], 1)
        self.assertEqual(piped(f"'{ATTEST}' list laws > /dev/full | true"), "4")

    def test_a_terminal_that_closes_keeps_everything(self):
        run = subprocess.Popen([ATTEST, "check", "cpu_naive", "--seed", "7", "--cases", "5000", "--profile", "core"],
                               cwd=self.cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment)
        while not os.path.exists(self.path("result.jsonl")):
            time.sleep(0.05)
        time.sleep(1)
        run.send_signal(signal.SIGHUP)
        run.communicate(timeout=120)
        self.assertEqual(run.returncode, 3)
        self.assertTrue(self.records()[-1]["interrupted"])

    def test_a_full_disk_ends_with_4_and_no_half_line(self):
        # A disk of 64 KiB, in a name space of its own; /dev/full where that is not allowed.
        script = (f"mkdir attest-out && mount -t tmpfs -o size=64k tmpfs attest-out && cd attest-out/.. && "
                  f"'{ATTEST}' check cpu_naive --seed 7 --cases 6 --record cases; code=$?; "
                  f"cat attest-out/result.jsonl > kept.jsonl; exit $code")
        run = subprocess.run(["unshare", "-rm", "sh", "-c", script], cwd=self.cwd, capture_output=True, text=True,
                             check=False)
        if "mount:" in run.stderr or "unshare:" in run.stderr:
            os.mkdir(os.path.join(self.cwd, "full"))
            os.symlink("/dev/full", os.path.join(self.cwd, "full", "result.jsonl.new"))
            run = subprocess.run([ATTEST, "check", "cpu_naive", *QUICK, "--out", "full"], cwd=self.cwd,
                                 capture_output=True, text=True, check=False)
        else:
            with open(os.path.join(self.cwd, "kept.jsonl"), "rb") as file:
                kept = file.read().splitlines(keepends=True)
            self.assertGreater(len(kept), 20)
            for line in kept:
                self.assertTrue(line.endswith(b"\n"))
                json.loads(line)
        self.assertEqual(run.returncode, 4, run.stdout + run.stderr)
        self.assertEqual(run.stderr.count("attest: "), 1, run.stderr)
        self.assertIn("no space left on device", run.stderr.replace("\n        ", " "))

    def test_another_kernel_does_not_go_on_with_a_run(self):
        module = os.path.join(self.cwd, "mine.py")
        shutil.copy(os.path.join(ROOT, "kernels", "examples", "numpy_attention.py"), module)
        kernel = ["check", "python:mine:forward", "--match", "rank.*"]
        self.attest(*kernel, "--seed", "7", "--cases", "6", code=0)
        self.attest("check", "python:mine:forward", "--resume", "attest-out", "--seed", "7", code=0)
        self.attest("check", "python:mine:forward", "--resume", "attest-out", "--seed", "8", code=2)
        with open(module, "a", encoding="utf-8") as file:
            file.write("# another\n")
        refused = self.attest("check", "python:mine:forward", "--resume", "attest-out", code=2)
        self.assertIn("is another than the one that was judged there", " ".join(refused.split()))

    def test_a_python_kernel_without_what_it_lists_or_that_raises(self):
        with open(os.path.join(self.cwd, "mine.py"), "w", encoding="utf-8") as file:
            file.write('ATTEST = {"name": "mine", "version": "1", "formats": ["f32"], "gradients": ["q"]}\n'
                       "def forward(problem, q, k, v, **tensors):\n    raise ValueError('no such tile')\n")
        self.assertIn("mine has no function backward", self.attest("check", "python:mine:forward", code=2))
        with open(os.path.join(self.cwd, "mine.py"), "a", encoding="utf-8") as file:
            file.write("backward = forward\n")
        line = "b1 hq1 hkv1 tq1 tk1 d1 f32"
        self.assertIn("no such tile", self.attest("explain", line, "--kernel", "python:mine:forward", code=1))
        for line in ("b0 hq1", "tq0", "hq2 tq0 tk3 d2 grad"):
            self.assertIn("no query", self.attest("explain", line, "--kernel", "cpu_flash", code=0))

    def test_a_report_that_cannot_be_written_costs_no_screen(self):
        reports = os.path.join(self.cwd, "reports")
        os.mkdir(reports)
        run = subprocess.Popen([ATTEST, "check", "mutant:M001", "--seed", "7", "--match", "masking.*", "--junit",
                                "reports/laws.xml"], cwd=self.cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=self.environment, text=True)
        while not os.path.exists(self.path()):
            time.sleep(0.01)
        os.rmdir(reports)
        screen, complaint = run.communicate(timeout=120)
        self.assertEqual(run.returncode, 4, complaint)
        self.assertIn("VIOLATED", screen)
        self.assertIn("reports/laws.xml: No such file", complaint)

    def test_a_law_that_was_interrupted_is_resumed(self):
        self.attest("check", "cpu_naive", "--seed", "7", "--cases", "6", "--match", "reference.*", code=0)
        whole = self.records()
        cut = [record for record in whole if record["record"] != "end"]
        law = next(record for record in cut if record.get("law") == "reference.output" and record["record"] == "law")
        law.update(verdict="inconclusive", reason_kind="interrupted", reason="interrupted after 2 of 6 cases", cases=2)
        self.write_records(cut)
        self.attest("check", "--resume", "attest-out", code=0)
        self.assertEqual(sum(record.get("law") == "reference.output" for record in self.records()
                             if record["record"] == "law"), 1)
        self.attest("check", "--resume", "attest-out", code=0)  # nothing is left to do
        self.attest("check", "--resume", "attest-out", "--junit", "laws.xml", "--jobs", "1", code=0)
        self.assertTrue(os.path.exists(os.path.join(self.cwd, "laws.xml")))
        for option in (["--profile", "core"], ["--shapes", "4"], ["--seed=9"], ["-x"]):
            self.assertIn(f"{option[0].partition('=')[0]} cannot change",
                          self.attest("check", "--resume", "attest-out", *option, code=2))

    def test_two_runs_do_not_share_a_folder(self):
        os.mkdir(self.path())
        held = os.open(self.path(), os.O_RDONLY)
        fcntl.flock(held, fcntl.LOCK_EX)
        self.assertIn("another run is writing there", self.attest("check", "cpu_naive", *QUICK, code=2))
        # What holds it for a run that was killed is gone soon.
        threading.Timer(0.5, os.close, [held]).start()
        self.attest("check", "cpu_naive", *QUICK, code=0)


if __name__ == "__main__":
    EXAMPLES = os.path.abspath(sys.argv.pop())
    ATTEST = os.path.abspath(sys.argv.pop())
    unittest.main(verbosity=1)
