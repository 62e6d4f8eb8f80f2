#!/usr/bin/env python3
"""command_behaviour_test.py ATTEST: the command as a person and a CI job meet it.

Exit codes, one error a mistake, the same verdict from the same seed, replay of what was found, Ctrl-C, a full
disk, a run that was cut, and every line of result.jsonl against its schema.
"""
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

try:
    import jsonschema
except ImportError:  # the C++ test checks the same records structurally
    jsonschema = None

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ATTEST = None
SMALL = ["--seed", "7", "--cases", "3"]


class Behaviour(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.cwd = self.folder.name

    def tearDown(self):
        self.folder.cleanup()

    def attest(self, *arguments, code=None, env_worker=None, **more):
        environment = dict(os.environ, COLUMNS="80", NO_COLOR="1", LC_ALL="C")
        if env_worker:
            environment["ATTEST_WORKER_DIR"] = env_worker
        run = subprocess.run([ATTEST, *arguments], cwd=self.cwd, capture_output=True, text=True, timeout=300,
                             env=environment, **more)
        if code is not None:
            self.assertEqual(run.returncode, code, f"{arguments}\n{run.stdout}{run.stderr}")
        for line in (run.stdout + run.stderr).splitlines():
            if arguments[:1] != ("describe",) and "--help" not in arguments and not re.match("  [a-z:]+ +attest ", line):
                self.assertLessEqual(len(line), 80, line)
        return run

    def records(self, out="attest-out"):
        with open(os.path.join(self.cwd, out, "result.jsonl"), "rb") as file:
            lines = file.read().splitlines(keepends=True)
        return lines, [json.loads(line) for line in lines]

    def error(self, *arguments, code=2, **more):
        run = self.attest(*arguments, code=code, **more)
        self.assertEqual(run.stdout, "")
        lines = run.stderr.splitlines()
        self.assertTrue(lines[0].startswith("attest: "), run.stderr)
        self.assertTrue(all(line.startswith("        ") for line in lines[1:]), run.stderr)
        self.assertLessEqual(run.stderr.count("attest: "), 1, run.stderr)
        return run.stderr

    def test_a_right_kernel_holds(self):
        run = self.attest("check", "cpu_flash", *SMALL, code=0)
        self.assertIn("HOLDS", run.stdout)
        self.assertIn("closest to the bound", run.stdout)
        lines, records = self.records()
        self.assertEqual(records[0]["record"], "run")
        self.assertEqual(records[-1]["record"], "end")
        self.assertEqual(records[-1]["lines"], len(lines))
        self.assertEqual(records[-1]["sha256"], hashlib.sha256(b"".join(lines[:-1])).hexdigest())
        self.validate(records)

    def validate(self, records):
        if jsonschema is None:
            return
        with open(os.path.join(ROOT, "fixtures", "schema", "result.schema.json"), encoding="utf-8") as file:
            check = jsonschema.Draft202012Validator(json.load(file))
        for record in records:
            faults = [f"{list(fault.absolute_path)}: {fault.message[:200]}" for fault in check.iter_errors(record)]
            self.assertEqual(faults, [], record["record"])

    def test_a_wrong_kernel_is_violated_and_replays(self):
        run = self.attest("check", "mutant:M001", "--seed", "7", "--cases", "30", "--match", "masking.*",
                          "--record", "cases", code=1)
        self.assertIn("it computes     a causal mask aligned top-left", run.stdout)
        self.assertIn("VIOLATED", run.stdout.splitlines()[-2])
        self.validate(records := self.records()[1])
        self.assertGreater(sum(r["record"] == "case" for r in records), 100)
        command = re.search(r"attest (replay \S+) --kernel mutant:M001", run.stdout).group(1).split()
        self.assertIn("VIOLATED", self.attest(*command, code=1).stdout)  # knows its kernel and law
        self.attest(*command, "--kernel", "cpu_flash", code=0)
        explained = self.attest("explain", *command[1:], code=1).stdout
        self.assertIn("first diverging element", explained)
        self.assertIn("it computes a causal mask aligned top-left", explained)
        self.assertIn("every element agrees", self.attest("explain", command[1], "--kernel", "cpu_flash", code=0).stdout)
        self.assertIn("stay listed", self.attest("replay", "--kernel", "cpu_flash", code=0).stdout)  # no repair

    def test_explain_shows_where_a_backward_parts(self):
        line, late = "b1 hq2 hkv1 tq3 tk4 d3 causal f32 grad", "b1 hq1 hkv1 tq9 tk9 d1 docs_q 8,1 docs_kv 0,9 scale 0.5 f32 grad"
        explained = self.attest("explain", line, "--kernel", "mutant:M113", code=1).stdout
        self.assertRegex(explained, r"(?s)weight P\[0,0\] +0\.4266 +0\.4266.*delta D\[0\] +0\.3506 +0 +differs here first")
        self.assertIn("it computes dS = P dP: delta is left out (seen in dQ and dK)", " ".join(explained.split()))
        self.assertIn("every element agrees", self.attest("explain", line, "--kernel", "cpu_flash", code=0).stdout)
        self.assertIn("weight P[8,0]", self.attest("explain", late, "--kernel", "mutant:M111", code=1).stdout)

    def test_a_line_is_judged_under_every_law(self):
        run = self.attest("replay", "b1 hq2 hkv1 tq5 tk7 d4 causal f32", "--kernel", "cpu_naive", code=0)
        self.assertIn("reference.output", run.stdout)
        self.assertIn("masking.causal", run.stdout)
        self.attest("replay", "b1 hq1 hkv1 tq2 tk1 d1 causal f32", "--kernel", "mutant:M001", "--law",
                    "masking.causal", code=1)
        self.attest("replay", "row_fully_masked", "--kernel", "cpu_flash", code=0)
        dropped = "b1 hq1 hkv1 tq1 tk2 d1 dropout 0.5 seed 12520918 f32 values small_int"
        self.assertIn("differs here first", self.attest("explain", dropped, "--kernel", "mutant:M310", code=1).stdout)

    def test_the_seed_repeats_a_run(self):
        def shown():
            self.attest("check", "mutant:M003", "--seed", "11", "--cases", "20", "--match", "masking.*", "--jobs",
                        jobs, "--out", f"out{jobs}", code=1)
            _, records = self.records(f"out{jobs}")
            return [(r["law"], r["verdict"], r["cases"], r.get("counterexample")) for r in records
                    if r["record"] == "law"]
        jobs = "1"
        first = sorted(shown())
        jobs = "2"
        self.assertEqual(first, sorted(shown()))

    def test_errors_are_one_sentence_and_exit_2(self):
        self.assertIn("did you mean --seed?", self.error("check", "cpu_flash", "--seeds", "7"))
        self.assertIn("a number and a unit", self.error("check", "cpu_flash", "--time", "60"))
        self.assertIn("did you mean cpu_flash?", self.error("check", "cpu_flsh"))
        self.assertIn('did you mean masking.*?', self.error("check", "cpu_flash", "--match", "maskng.*"))
        self.assertIn("hkv3 does not divide hq8",
                      self.error("replay", "b1 hq8 hkv3 tq128 d64 causal f16", "--kernel", "cpu_flash"))
        self.assertIn("^^^^", self.error("replay", "b1 hq8 hkv3 tq128 d64 causal f16", "--kernel", "cpu_flash"))
        self.assertIn("has an id that begins with it", self.error("replay", "3f2a9c"))
        self.assertIn("did you mean quick?", self.error("check", "cpu_flash", "--profile", "quik"))
        self.assertIn("no such file", self.error("check", "./libnot.so"))
        self.assertIn("no command", self.error())
        self.assertIn("did you mean check?", self.error("chek", "cpu_flash"))
        self.assertIn("which kernel?", self.error("replay", "b1 hq1 hkv1 tq2 tk1 d1 causal f32"))
        self.assertIn("has no result.jsonl", self.error("check", "--resume", "nowhere"))
        self.assertIn("no law of this name; did you mean masking.causal?", self.error("list", "laws", "masking.casual"))
        self.assertFalse(os.path.exists(os.path.join(self.cwd, "attest-out")), "an error leaves no results")

    def test_a_malformed_case_file_is_pointed_at(self):
        with open(os.path.join(self.cwd, "bad.json"), "w", encoding="utf-8") as file:
            file.write('{"problem": {\n  "scale": 0.125}}\n')
        said = self.error("replay", "bad.json", "--kernel", "cpu_flash")
        self.assertIn("bad.json:2:12: real numbers are hex strings", said)
        self.assertIn("^^^^^", said)

    def test_lists_and_descriptions(self):
        self.assertIn("masking.causal", self.attest("list", "laws", "--match", "masking.*", code=0).stdout)
        self.assertIn("why", self.attest("list", "laws", "masking.causal", code=0).stdout)
        for what, one in (("laws", "rank.scores"), ("kernels", "cpu_flash"), ("mutants", "M001"), ("profiles", "quick"),
                          ("fixtures", "row_fully_masked")):
            self.assertIn(one, self.attest("list", what, code=0).stdout)
            self.assertIn(f"matches none of the {what}", self.error("list", what, "--match", "nothing.*"))
        manifest = json.loads(self.attest("describe", "cpu_flash", code=0).stdout)
        self.assertEqual(manifest["dialect"]["causal"], "bottom_right")
        for command in ("list", "check", "replay", "explain", "certify", "describe", "fixture"):
            self.assertIn(command, self.attest("--help", code=0).stdout)
            self.attest(command, "--help", code=0)

    def test_a_fixture_is_written_and_tried(self):
        words = ["fixture", "tail.json", "b1 hq1 hkv1 tq1 tk17 d8 f32", "--story", "One key more than a tile."]
        self.assertIn("no --law", self.error(*words))
        words += ["--law", "reference.output"]
        self.assertIn("tk17", self.attest(*words, code=0).stdout)
        self.assertIn("exists", self.error(*words))
        self.attest(*words, "--replace", code=0)
        self.assertIn("no law of this name", self.error(*words, "--replace", "--law", "masking.cusal"))
        self.assertIn("not tried on such a case", self.error(*words, "--replace", "--law", "masking.causal"))
        self.attest("replay", "tail.json", "--kernel", "cpu_flash", "--law", "reference.output", code=0)
        self.attest("check", "cpu_naive", *SMALL, "--match", "masking.window", "--record", "cases", "--out", "first",
                    code=0)
        cases = [r for r in self.records("first")[1] if r["record"] == "case"]
        self.assertEqual([("window 0 0" in r["line"], r.get("stored")) for r in cases][0], (True, True))
        self.assertEqual(len(cases), 4)

    def test_a_certificate_can_be_checked(self):
        # A part of a profile holds, and certifies nothing: it says so first, and exits with 3.
        run = self.attest("certify", "cpu_naive", *SMALL, "--match", "reference.*", "--match", "probability.*", "--out",
                          "cert", code=3)
        self.assertIn("laws judged, holds: not a certificate", " ".join(run.stdout.split()))
        with open(os.path.join(self.cwd, "cert", "certificate.json"), encoding="utf-8") as file:
            certificate = json.load(file)
        with open(os.path.join(self.cwd, "cert", "result.jsonl"), "rb") as file:
            self.assertEqual(certificate["result_sha256"], hashlib.sha256(file.read()).hexdigest())
        self.assertEqual(certificate["verdict"], "holds")
        self.assertEqual(certificate["profile"]["name"], "serving")
        self.assertFalse(certificate["whole"])
        self.assertTrue(certificate["does_not_say"])
        with open(os.path.join(self.cwd, "cert", "certificate.md"), encoding="utf-8") as file:
            page = file.read()
        self.assertTrue(page.splitlines()[0].endswith("not a certificate"), page.splitlines()[0])
        self.assertIn("What this certificate does not say", page)

    def test_a_forged_profile_certifies_nothing(self):
        path = os.path.join(self.cwd, "serving.json")
        forged = {"name": "serving", "version": 1, "cases_per_law": 2, "laws": ["masking.causal"], "fails": []}
        with open(path, "w", encoding="utf-8") as file:
            json.dump(forged, file)
        self.assertIn("lets proven violations pass", " ".join(self.error("certify", "mutant:M001", "--profile",
                                                                        "serving.json").split()))
        forged.update(fails=["violation"], undrawn_pairs_max=100000, reach={})
        with open(path, "w", encoding="utf-8") as file:
            json.dump(forged, file)
        self.attest("certify", "cpu_naive", "--profile", "serving.json", "--seed", "7", "--out", "own")
        with open(os.path.join(self.cwd, "own", "certificate.json"), encoding="utf-8") as file:
            certificate = json.load(file)
        self.assertIn("under a profile of its own, serving, which is not one of attest's", certificate["title"])
        with open(path, "rb") as file:
            self.assertEqual(certificate["own_profile"]["sha256"], hashlib.sha256(file.read()).hexdigest())

    def interrupted(self, times):
        run = subprocess.Popen([ATTEST, "check", "cpu_naive", "--seed", "7", "--cases", "5000", "--profile", "core"],
                               cwd=self.cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(2)
        for _ in range(times):
            run.send_signal(signal.SIGINT)
            time.sleep(0.3)
        out, _ = run.communicate(timeout=120)
        self.assertIn("NOT COMPLETE", out)
        self.assertIn("attest check --resume attest-out", out)
        self.assertEqual(run.returncode, 3)
        _, records = self.records()
        self.assertTrue(records[-1]["interrupted"])
        self.validate(records)

    def test_ctrl_c_once_keeps_everything(self):
        self.interrupted(1)

    def test_ctrl_c_twice_stops_at_once(self):
        self.interrupted(2)

    def test_a_run_that_was_cut_is_resumed(self):
        arguments = ["check", "mutant:M001", "--seed", "7", "--cases", "12", "--match", "masking.*", "--match",
                     "probability.*"]
        self.attest(*arguments, code=1)
        lines, whole = self.records()
        laws = [n for n, record in enumerate(whole) if record["record"] == "law"]
        with open(os.path.join(self.cwd, "attest-out", "result.jsonl"), "wb") as file:
            file.write(b"".join(lines[:laws[4]]) + lines[laws[4]][:40])
        self.attest("check", "--resume", "attest-out", code=1)
        _, again = self.records()
        self.validate(again)

        def verdicts(records):
            return sorted((r["law"], r["verdict"]) for r in records if r["record"] == "law")
        self.assertEqual(verdicts(again), verdicts(whole))
        self.assertEqual(again[-1]["exit"], 1)

    def test_standard_output_may_go_away(self):
        run = subprocess.run(f"'{ATTEST}' list laws | head -1", shell=True, capture_output=True, text=True, check=False)
        self.assertEqual(run.stdout.count("\n"), 1)

    def test_a_cuda_kernel_is_judged_on_the_cpu(self):
        self.attest("certify", "simt_flash_mma", *SMALL, "--match", "reference.*", "--match", "hygiene.*", "--out", "cert",
                    code=3)  # not all of a profile
        with open(os.path.join(self.cwd, "cert", "certificate.json"), encoding="utf-8") as file:
            self.assertIn('"simt_flash_mma"', file.read())
        _, records = self.records("cert")
        self.validate(records)
        self.assertEqual({r["verdict"] for r in records if r.get("law") in ("hygiene.schedule", "hygiene.diagnostics")},
                         {"holds"})
        run = self.attest("check", "mutant:G01", *SMALL, "--match", "hygiene.diagnostics", code=1)
        said = re.sub(r"\s+", " ", run.stdout)
        self.assertRegex(said, r"_race: .* race on \w+: flash_mma.cuh:\d+ \(thread \d+\) and mma_tile.cuh:\d+")
        command = re.search(r"attest (replay \S+) --kernel mutant:G01", said).group(1).split()
        self.attest(*command, code=1)
        self.attest(*command, "--kernel", "simt_flash_mma:checked", code=0)

    def test_a_plugin_that_was_not_built_is_named(self):
        folder = os.path.join(self.cwd, "elsewhere")
        os.mkdir(folder)
        for name in ("attest_worker", "attest_builtin.so"):
            shutil.copy(os.path.join(os.path.dirname(os.path.dirname(ATTEST)), "kernels", "worker", name), folder)
        said = self.error("check", "simt_flash", env_worker=folder)
        self.assertEqual(" ".join(said.split()), "attest: simt_flash: not built here: attest_simt.so is not beside "
                                                 "attest_worker; ci/build attest_simt makes it")
        listed = self.attest("list", "kernels", env_worker=folder, code=0).stdout
        self.assertIn("attest_simt_checked.so", listed)

    def test_shards_are_disjoint_parts(self):
        seen = []
        for part in range(2):
            self.attest("check", "cpu_naive", "--seed", "7", "--cases", "8", "--match", "reference.output", "--record",
                        "cases", "--shard", f"{part}/2", "--out", f"part{part}")
            _, records = self.records(f"part{part}")
            seen += [r["number"] for r in records if r["record"] == "case" and not r.get("stored")]
        self.assertEqual(sorted(seen), list(range(8)))


if __name__ == "__main__":
    ATTEST = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=1)
