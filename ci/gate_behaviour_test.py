#!/usr/bin/env python3
"""gate_behaviour_test.py ATTEST: `attest gate` as a pull request meets it: green and red, kernels and records, waivers."""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree as ElementTree

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
    def attest(cls, *arguments, code=None, **variables):
        environment = {**{k: v for k, v in os.environ.items() if not k.startswith("GITHUB_")}, **variables}
        run = subprocess.run([ATTEST, *arguments, *(["--jobs", "1", "--timeout", "60s"] if arguments[0] not in ("report", "replay") else [])],
                             cwd=cls.cwd, capture_output=True, text=True, timeout=500,
                             env=dict(environment, COLUMNS="80", NO_COLOR="1", LC_ALL="C"))
        if code is not None:
            assert run.returncode == code, f"{arguments}: {run.returncode}\n{run.stdout}{run.stderr}"
        for line in (run.stdout + run.stderr).splitlines():
            assert len(line) <= 80 or line.startswith("::") or re.match("  [a-z]+ +attest ", line), line  # commands are copied
        return run

    def waivers(self, **changes):
        path = os.path.join(self.cwd, "waivers.json")
        waiver = dict({"law": "masking.*", "kernel": "mutant:*", "reason": "known", "who": "me",
                       "expires": "2999-12-31"}, **changes)
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"waivers": [waiver]}, file)
        return path

    def test_a_green_and_a_red_candidate(self):
        green = self.attest("gate", "--baseline", "main", "--candidate", "cpu_flash", "--profile", "quick", *CASES, "--out", "green", code=0)
        self.assertIn("NOTHING WORSE", green.stdout)
        red = self.attest("gate", "--baseline", "main", "--candidate", "mutant:M001", "--out", "red", "--summary",
                          "red.txt", "--junit", "red.xml", code=1)
        self.assertIn("masking.influence  holds -> violated", red.stdout)
        self.assertIn("exit 1", red.stdout)
        # Why, once for all that it broke, and how to see it.
        said = " ".join(red.stdout.split())
        self.assertIn("it computes a causal mask aligned top-left", said)
        replay = re.search(r"attest (replay \w+ --kernel mutant:M001 --out red/candidate)", said)
        self.attest(*replay[1].split(), code=1)
        with open(os.path.join(self.cwd, "red.txt"), encoding="utf-8") as file:
            page = file.read()
        self.assertIn("| worse | masking.influence | holds | violated |", page)
        self.assertIn("attest " + replay[1], page)
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

    def alerts(self, gate, code):
        """What SARIF says of its first result and of what no law found, code quality of each issue, and how many laws JUnit skips as waived."""
        self.attest(*gate, "--sarif", "red.sarif", "--code-quality", "red.json", code=code)
        with open(os.path.join(self.cwd, "red.sarif"), encoding="utf-8") as file:
            run = json.load(file)["runs"][0]
        results, self.state = run["results"], run["results"][0]["baselineState"]
        self.lost = [n["message"]["text"] for n in run["invocations"][0]["toolExecutionNotifications"]]
        with open(os.path.join(self.cwd, "red.json"), encoding="utf-8") as file:
            issues = json.load(file)
        root = ElementTree.parse(os.path.join(self.cwd, "red.xml")).getroot()
        skipped = [t for suite in root if suite.get("name") != "gate" for t in suite.iter("skipped")]
        for suite in [root, *root]:
            for count, tag in (("failures", "failure"), ("skipped", "skipped")):
                self.assertEqual(int(suite.get(count)), len(list(suite.iter(tag))), suite.get("name"))
        suppressed = [[f"{s['status']}: {s['justification']}" for s in r["suppressions"]] or ["open"] for r in results]
        self.assertEqual([s for s in suppressed if s != suppressed[0]], [])
        return (suppressed[0], {(i["severity"] + ": " + i["description"].partition("attest ")[0]).rstrip(": ") for i in issues}, len([s for s in skipped if "violated, waived: known" in s.get("message")]))

    def test_github_and_junit_are_told_what_is_new(self):
        red = ["gate", "--baseline", "main", "--candidate", "mutant:M001", "--source", "mine.cu:7", "--junit", "red.xml", "--out", "told"]
        self.attest(*red, code=1)
        lesser = [*red[:3], "--candidate", "told/candidate", *red[5:]]

        def told(*more, code):
            said = self.attest(*lesser, *more, code=code, GITHUB_ACTIONS="true").stdout
            annotations = [line.removeprefix("::").partition("::") for line in said.splitlines() if re.match("::(error|warning|notice) ", line)]
            suites = {s.get("name"): s for s in ElementTree.parse(os.path.join(self.cwd, "red.xml")).getroot()}
            return [(place.split(" ")[0], place, text) for place, _, text in annotations], suites["gate"]
        lines, gate = told(code=1)
        errors = [place for kind, place, _ in lines if kind == "error"]
        self.assertTrue(any("title=attest masking." in place for place in errors), lines)
        self.assertTrue(any("file=mine.cu,line=7,title=attest gate%3A " in place for place in errors), lines)
        self.assertEqual(gate.find("testcase[@name='feature.rope']/failure").get("message"), "declared → not declared")
        self.assertEqual(len(gate.findall("testcase/failure")), int(gate.get("failures")))
        lines, gate = told("--waivers", self.waivers(law="*"), code=0)
        self.assertEqual([kind for kind, _, _ in lines if kind == "error"], [])
        self.assertTrue(any(kind == "warning" and "waived" in place and "known (me" in text for kind, place, text in lines), lines)
        self.assertIn("known (me", gate.find("testcase[@name='feature.rope']/skipped").get("message"))
        self.assertEqual((gate.get("failures"), gate.find("testcase[@name='nothing worse']") is None), ("0", False))
        self.assertEqual(self.alerts(lesser, code=1), (["open"], {"critical"}, 0))
        self.assertEqual(self.state, "new")
        self.assertIn("gate: feature.rope, declared → not declared", self.lost)
        waived = self.alerts([*lesser, "--waivers", self.waivers(law="*")], code=0)
        self.assertEqual(waived[0], ["accepted: known (me, until 2999-12-31)"])
        self.assertEqual(waived[1], {"info: waived: known (me, until 2999-12-31)"})
        self.assertGreater(waived[2], 0)
        step = os.path.join(self.cwd, "step.txt")
        with open(step, "w", encoding="utf-8") as file:
            file.write("y" * (900 * 1024 - 700) + "\n")
        self.attest(*lesser, code=1, GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=step)
        self.assertLessEqual(os.path.getsize(step), 900 * 1024 + 1)
        with open(step, encoding="utf-8") as file:
            rows = [line for line in file.read().split("\n") if line.startswith("|")]
        self.assertGreater(len(rows), 3)
        self.assertEqual([row for row in rows if not row.endswith("|")], [])
        lesser[2] = "told/candidate"
        self.assertEqual(self.alerts(lesser, code=0), (["open"], {"info: as in the baseline"}, 0))
        self.assertEqual(self.state, "unchanged")
        lines, gate = told(code=0)
        self.assertEqual({kind for kind, _, _ in lines}, {"notice"})
        self.assertTrue(any("as before" in place for _, place, _ in lines), lines)
        self.assertEqual(ElementTree.parse(os.path.join(self.cwd, "red.xml")).getroot().get("failures"), "0")

    def test_an_interrupted_baseline_decides_nothing(self):
        run = subprocess.Popen([ATTEST, "gate", "--baseline", "cpu_naive", "--candidate", "cpu_naive", "--profile", "core",
                                "--seed", "5", "--out", "stopped"], cwd=self.cwd, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
        while run.poll() is None and not os.path.exists(os.path.join(self.cwd, "stopped", "baseline", "result.jsonl")):
            time.sleep(0.01)
        run.send_signal(signal.SIGINT)
        self.assertIn("nothing was compared", run.communicate(timeout=300)[0])
        self.assertEqual((run.returncode, os.path.exists(os.path.join(self.cwd, "stopped", "candidate"))), (3, False))

    def test_a_baseline_that_was_cut_says_why_nothing_is_decided_and_what_would_help(self):
        with open(os.path.join(self.cwd, "main", "result.jsonl"), encoding="utf-8") as file:
            lines = [line for line in file if json.loads(line)["record"] != "end" and "masking.poison" not in line]
        os.makedirs(os.path.join(self.cwd, "cut"))
        with open(os.path.join(self.cwd, "cut", "result.jsonl"), "w", encoding="utf-8") as file:
            file.writelines(lines)
        gate = self.attest("gate", "--baseline", "cut", "--candidate", "main", "--summary", "cut.txt", code=3).stdout
        self.assertIn("undecided  the baseline is not complete: it was interrupted", gate)
        self.assertIn("remedy     attest check --resume cut\n", gate)
        with open(os.path.join(self.cwd, "cut.txt"), encoding="utf-8") as file:
            self.assertIn("undecided: the baseline is not complete", file.read())

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
                *(("are the recorded run's", ["--baseline", "main", "--candidate", "cpu_flash", *other])
                  for other in (["--seed", "9"], ["--cases", "9"], ["--match", "rank.*"], ["--shapes", "9"], ["--profile", "core"])),
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
