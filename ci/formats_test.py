#!/usr/bin/env python3
"""formats_test.py ATTEST: JUnit, SARIF, GitHub's annotations and summary, GitLab's code quality, from recorded runs.

JUnit is read by the standard XML parser and its counts are recounted; SARIF is held to what the standard says of each
object that we write: which keys, of which kind, and that every index and reference points at something.
"""
import json
import os
import re
import subprocess
import sys
import unittest
import xml.etree.ElementTree as ElementTree

from page_test import PageTest, golden
import page_test

ATTEST = None
ANY = object()  # a text that is not empty
MESSAGE = {"text": ANY}
# Of SARIF 2.1.0 (OASIS, 2020), section 3: the objects that we write. A key with ? may be missing.
PLACE = {"artifactLocation": {"uri": ANY}, "region?": {"startLine": int}}
LOCATION = {"physicalLocation?": PLACE, "logicalLocations?": [{"fullyQualifiedName": ANY, "kind": ANY}],
            "message?": MESSAGE}
SARIF = {
    "$schema": ANY, "version": "2.1.0", "runs": [{
        "tool": {"driver": {"name": "attest", "version": ANY, "rules": [{
            "id": ANY, "shortDescription": MESSAGE, "fullDescription": MESSAGE, "help?": MESSAGE,
            "defaultConfiguration": {"level": "error"}, "properties": {"tags": [ANY]}}]}},
        "automationDetails": {"id": ANY},
        "invocations": [{"executionSuccessful": bool, "exitCode": int, "commandLine": ANY, "startTimeUtc": ANY,
                         "toolExecutionNotifications": [{"level": ("warning", "error"), "message": MESSAGE,
                                                         "associatedRule?": {"id": ANY}}]}],
        "columnKind": "utf16CodeUnits",
        "results": [{"ruleId": ANY, "ruleIndex?": int, "level": ("warning", "error"), "message": MESSAGE,
                     "locations": [LOCATION], "relatedLocations?": [LOCATION],
                     "partialFingerprints": {"attest/v1": ANY},
                     "properties": {"laws": [ANY], "smallestCase": ANY, "confirmed": ANY}}]}]}


def hold(value, form, at="$"):
    """The value has the form, and nothing beside it."""
    if form is ANY:
        assert isinstance(value, str) and value, f"{at}: {value!r} is no text"
    elif isinstance(form, type):
        assert type(value) is form, f"{at}: {value!r} is no {form.__name__}"
    elif isinstance(form, tuple):
        assert value in form, f"{at}: {value!r}"
    elif isinstance(form, list):
        assert isinstance(value, list), at
        for number, item in enumerate(value):
            hold(item, form[0], f"{at}[{number}]")
    elif isinstance(form, dict):
        known = {key.rstrip("?"): key for key in form}
        assert set(value) <= set(known), f"{at}: {set(value) - set(known)}"
        for key, name in known.items():
            assert key in value or name.endswith("?"), f"{at}: {key} is missing"
            if key in value:
                hold(value[key], form[name], f"{at}.{key}")
    else:
        assert value == form, f"{at}: {value!r} is not {form!r}"


class Formats(PageTest):
    def write(self, result, *more, **environment):
        environment = dict({k: v for k, v in os.environ.items() if not k.startswith("GITHUB_")}, **environment)
        run = subprocess.run([ATTEST, "report", result, "--out", "page", "--junit", "junit.xml", "--sarif", "a.sarif",
                              "--code-quality", "quality.json", "--summary", "summary.txt", *more], cwd=self.cwd,
                             capture_output=True, text=True, env=environment)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run

    def text(self, name):
        with open(os.path.join(self.cwd, name), encoding="utf-8") as file:
            return file.read()

    def records(self, path):
        with open(path, encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def sourced(self, source="src/flash.cu:118", problem=None):
        def change(record):
            if record["record"] == "run":
                record["source"] = source
            if record["record"] == "counterexample" and problem:
                record.update(problem=problem, outcome="error")
        return self.altered("check_fail", change)

    def test_junit_has_a_test_a_law(self):
        for result in (golden("check_fail"), golden("check_pass"), self.hostile()):
            self.write(result)
            root = ElementTree.fromstring(self.text("junit.xml"))
            laws = [r for r in self.records(result) if r["record"] == "law"]
            tests = {f"{t.get('classname')}.{t.get('name')}": t for t in root.iter("testcase")}
            for law in laws:
                test = tests["attest." + law["law"]]
                found = [child.tag for child in test]
                expected = {"violated": ["failure"], "holds": []}.get(law["verdict"], ["skipped"])
                self.assertEqual(found, expected, law["law"])
                for failure in test.iter("failure"):
                    self.assertIn("replay: attest replay " + law["counterexample"], failure.text)
                    self.assertTrue(failure.get("message"))
            for suite in [root, *root.iter("testsuite")]:
                for count, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error"),
                                   ("skipped", "skipped")):
                    self.assertEqual(int(suite.get(count)), len(list(suite.iter(tag))), (suite.get("name"), count))

    def test_what_a_run_draws_is_drawn_again_from_its_records(self):
        """Also of a run that ended early, whose last line does not say how many laws were cut."""
        drawn = ["--junit", "j.xml", "--sarif", "s.sarif", "--code-quality", "q.json", "--summary", "s.txt"]
        for more, words in ((["-x"], "not complete"), (["--cases", "1"], "breaks")):
            subprocess.run([ATTEST, "check", "mutant:M001", *more, "--seed", "3", "--jobs", "1", "--timeout", "60s", "--out", "run", "--report",
                            *drawn], cwd=self.cwd, check=False, capture_output=True)
            before = {name: self.text(name) for name in ("run/report.html", *drawn[1::2])}
            self.assertIn(words, before["run/report.html"])
            subprocess.run([ATTEST, "report", "run", *drawn], cwd=self.cwd, check=True, capture_output=True)
            for name, text in before.items():
                self.assertEqual(self.text(name), text, name)

    def test_each_law_of_the_catalogue_is_one_test(self):
        """Of which some stand behind those of other families."""
        subprocess.run([ATTEST, "check", "cpu_flash", "--match", "heads.cross", "--cases", "1", "--seed", "5", "--jobs", "1", "--timeout", "60s",
                        "--out", "run", "--junit", "run.xml", "--report"], cwd=self.cwd, check=True, stdout=subprocess.DEVNULL)
        laws = [r["law"] for r in self.records(os.path.join(self.cwd, "run", "result.jsonl")) if r["record"] == "law"]
        families = {law.split(".")[0] for law in laws}
        root = ElementTree.parse(os.path.join(self.cwd, "run.xml")).getroot()
        tests = [f"{t.get('classname')}.{t.get('name')}" for t in root.iter("testcase")]
        self.assertEqual(sorted(tests), sorted("attest." + law for law in laws))
        self.assertEqual(sorted(s.get("name") for s in root), sorted(families))
        page = self.text(os.path.join("run", "report.html"))
        self.assertEqual(page.count('<tr class="fam">'), len(families))
        self.assertEqual(page.partition('<ul class="fams"')[2].partition("</ul>")[0].count("<li>"), len(families))

    def test_a_law_that_holds_came_no_further_than_its_bounds(self):
        """What its calls did wrong alone is told by another law, and drawn as wrong there."""
        subprocess.run([ATTEST, "check", "mutant:M001", "--seed", "3", "--cases", "20", "--match", "hygiene.sequence", "--match", "reference.output",
                        "--jobs", "1", "--timeout", "60s", "--out", "run"], cwd=self.cwd, stdout=subprocess.DEVNULL, check=False)
        laws = {r["law"]: r for r in self.records(os.path.join(self.cwd, "run", "result.jsonl")) if r["record"] == "law" and r["cases"]}
        self.assertEqual({law: r["verdict"] for law, r in laws.items()}, {"hygiene.sequence": "holds", "reference.output": "violated"})
        self.assertLessEqual(laws["hygiene.sequence"]["worst"]["ratio"], 1)

    def test_a_run_that_decides_nothing_is_not_green(self):
        self.write(self.altered("check_pass", lambda r: r["record"] != "end"))
        errors = list(ElementTree.fromstring(self.text("junit.xml")).iter("error"))
        self.assertEqual([e.get("type") for e in errors], ["not_complete"])
        self.assertFalse(json.loads(self.text("a.sarif"))["runs"][0]["invocations"][0]["executionSuccessful"])

    def test_sarif_is_what_the_standard_says(self):
        for result in (golden("check_fail"), golden("check_pass"), self.hostile(), self.sourced()):
            self.write(result)
            log = json.loads(self.text("a.sarif"))
            hold(log, SARIF)
            run = log["runs"][0]
            rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
            self.assertEqual(len(rules), len(set(rules)))
            for one in run["results"]:
                self.assertEqual(rules[one["ruleIndex"]], one["ruleId"])
                self.assertIn(one["ruleId"], one["properties"]["laws"])
                for place in one["locations"]:
                    self.assertRegex(place.get("physicalLocation", {}).get("artifactLocation", {}).get("uri", "a"),
                                     r"^[A-Za-z0-9._~/%-]+$")
            causes = [r for r in self.records(result) if r["record"] == "cause"]
            self.assertEqual(len([r for r in run["results"] if r["level"] == "error"]), len(causes))

    def test_a_race_is_placed_where_it_is(self):
        race = "the kernel returned an error: read-write race on qs: flash.cu:199 (thread 1) and tile.cuh:35 (thread 8)"
        self.write(self.sourced(problem=race))
        places = [(p["physicalLocation"]["artifactLocation"]["uri"], p["physicalLocation"]["region"]["startLine"])
                  for one in json.loads(self.text("a.sarif"))["runs"][0]["results"]
                  for p in one["locations"] + one["relatedLocations"]]
        self.assertEqual(places, [("src/flash.cu", 199), ("tile.cuh", 35)] * 2)
        self.write(self.sourced("src/other.cu:7", race))  # the caller's anchor is first, the race beside it
        quality = json.loads(self.text("quality.json"))
        self.assertEqual(quality[0]["location"], {"path": "src/other.cu", "lines": {"begin": 7}})

    def test_code_quality_is_what_gitlab_reads(self):
        form = [{"description": ANY, "check_name": ANY, "fingerprint": ANY,
                 "severity": ("info", "minor", "major", "critical", "blocker"),
                 "location": {"path": ANY, "lines": {"begin": int}}}]
        prints = []
        for result in (golden("check_fail"), self.sourced("b/c.cu:3"), self.hostile()):
            self.write(result)
            issues = json.loads(self.text("quality.json"))
            hold(issues, form)
            prints.append([issue["fingerprint"] for issue in issues])
            self.assertEqual(len(set(prints[-1])), len(prints[-1]))
        self.assertEqual(prints[0], prints[1])  # stable: a line that moves is the same finding

    def check(self, *more, **environment):
        run = subprocess.run([ATTEST, "check", "mutant:M001", "--match", "masking.influence", "--cases", "5",
                              "--jobs", "1", "--timeout", "60s", *more], cwd=self.cwd, capture_output=True, text=True,
                             env=dict(os.environ, NO_COLOR="1", **environment))
        self.assertEqual(run.returncode, 1, run.stderr)
        return run

    def test_github_gets_annotations_and_a_summary(self):
        summary = os.path.join(self.cwd, "step.txt")
        with open(summary, "w", encoding="utf-8") as file:
            file.write("before\n")
        run = self.check("--source", "a,b.cu:3", CI="true", GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=summary)
        stop, *screen = run.stdout.splitlines()
        word = re.fullmatch(r"::stop-commands::([0-9a-f]{64})", stop).group(1)
        after = screen[screen.index(f"::{word}::") + 1:]
        self.assertTrue(after[0].startswith("::error file=a%2Cb.cu,line=3,title=attest masking.influence::"), after)
        self.assertIn("%0Areplay: attest replay ", after[0])
        self.assertIn("seed 20261120", run.stdout)  # fixed where CI is set
        text = self.text("step.txt")
        self.assertTrue(text.startswith("before\n## attest: VIOLATED"), text[:80])
        again = self.check(CI="true", GITHUB_ACTIONS="false")
        self.assertNotIn("::error", again.stdout)
        self.assertNotIn("seed 20261120", self.check("--seed", "random", CI="true").stdout)

    def test_a_summary_is_cut_before_github_drops_it(self):
        def change(record):
            if record["record"] == "law":
                record["reason"] = record["reason"] and "x" * 299
        full = self.altered("check_fail", change)
        step = os.path.join(self.cwd, "step.txt")
        with open(step, "w", encoding="utf-8") as file:
            file.write("y" * (900 * 1024 - 6000))
        self.write(full, GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=step)
        self.assertLessEqual(os.path.getsize(step), 900 * 1024 + 1)
        text = self.text("step.txt")
        self.assertIn("more, see result.jsonl", text)
        self.assertEqual(text.count("<details>"), text.count("</details>"))

    def test_hostile_text_stays_text(self):
        self.write(self.hostile())
        prose = re.sub(r"(?ms)^```$.*?^```$", "", self.text("summary.txt"))  # in a fence nothing is markup
        self.assertEqual(re.findall(r"(?<!\\)<(?:script|img)", prose), [])
        for name in ("junit.xml", "a.sarif", "quality.json", "summary.txt"):
            self.assertNotRegex(self.text(name), "[\u202a-\u202e\x1b]")

    def test_files_that_cannot_be_written_are_told_before_the_run(self):
        for option, value, words in (("--junit", "no/x.xml", "no folder no"), ("--sarif", ".", "is a folder")):
            run = subprocess.run([ATTEST, "check", "cpu_flash", option, value], cwd=self.cwd, capture_output=True,
                                 text=True)
            self.assertEqual((run.returncode, run.stdout), (2, ""))
            self.assertIn(words, run.stderr)
        with open(os.path.join(self.cwd, "old.xml"), "w", encoding="utf-8") as file:
            file.write("green")
        run = subprocess.run([ATTEST, "check", "./nothing.so", "--junit", "old.xml"], cwd=self.cwd, capture_output=True)
        self.assertNotEqual(run.returncode, 0)
        self.assertFalse(os.path.exists(os.path.join(self.cwd, "old.xml")))


del PageTest  # its tests are page_test.py's

if __name__ == "__main__":
    ATTEST = page_test.ATTEST = os.path.abspath(sys.argv.pop(1))
    unittest.main()
