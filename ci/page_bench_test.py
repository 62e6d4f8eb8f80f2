#!/usr/bin/env python3
"""page_bench_test.py ATTEST: the page of a bench, as page_test.py looks at that of a run."""
import json
import os
import shutil
import subprocess
import sys
import unittest

import browser
import page_test
from page_test import EVIL, Tags


def leaves(value):
    """Where each figure and word of a record stands: the list or object, and its key there."""
    for key in value if isinstance(value, dict) else range(len(value)):
        if isinstance(value[key], (dict, list)):
            yield from leaves(value[key])
        elif key not in ("record", "v"):
            yield value, key


def other(value):
    """Another value that the records may have there."""
    return value * 2 + 1 if isinstance(value, (int, float)) else str(int(value) + 1) if value.isdigit() else value + " or other"


class Measured:
    def records(self):
        """A number of its own for each figure."""
        with open(page_test.golden("bench"), encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def bench(self, records):
        os.makedirs(os.path.join(self.cwd, "measured"), exist_ok=True)
        path = os.path.join(self.cwd, "measured", "bench.jsonl")
        with open(path, "w", encoding="utf-8") as out:
            out.writelines(json.dumps(record) + "\n" for record in records)
        return path

    def held(self, not_run="attest was built without CUDA"):
        """No bound was violated, and there was no GPU."""
        records = self.records()
        for record in records:
            for where, key in leaves(record):
                where[key] = 0 if key == "violated" else where[key]
        records[-1] = {"record": "device", "v": 1, "name": None, "not_run": not_run}
        return self.bench(records)


class Bytes(Measured, page_test.PageTest):
    def test_it_says_whether_a_proof_was_violated_and_what_was_not_run(self):
        held = self.held()
        for result in (held, os.path.dirname(held)):
            _, text = self.draw(result)
            self.assertEqual(text, self.draw(result, "again")[1])
            order = [text.index(part) for part in ("Nothing</span> that is proven was violated", "not run: attest was built without CUDA",
                                                   "Certified errors", "Bounds against", "escalation", "Speed", "Long contexts", "The run")]
            self.assertEqual(order, sorted(order))
        records = self.records()
        for record in records:
            for where, key in leaves(record):
                where[key] = 0 if key == "violated" else where[key]
        records[2]["f16"]["(b) random rounding, 2^-40"]["violated"] = 7
        self.assertIn("Nothing</span>", self.draw(self.bench(records))[1])  # it is no proof
        records[2]["f16"]["(a) worst case"]["violated"] = 1
        records[4]["bf16"]["violated"] = 2
        self.assertIn("3 elements</span> violated what is proven", self.draw(self.bench(records))[1])

    def test_every_figure_is_on_it(self):
        _, before = self.draw(self.bench(self.records()))
        for number in range(len(self.records())):
            for place in range(len(list(leaves(self.records()[number])))):
                records = self.records()
                where, key = list(leaves(records[number]))[place]
                if where[key] is None:
                    continue
                where[key] = other(where[key])
                with self.subTest(record=records[number]["record"], key=key, value=where[key]):
                    self.assertNotEqual(self.draw(self.bench(records))[1], before)

    def test_hostile_words_stay_words(self):
        records = self.records()
        records[0].update(attest=EVIL, started=EVIL, instructions=EVIL)
        records[0]["machine"].update(cpu=EVIL, os=EVIL, compiler=EVIL, gpu=EVIL)
        records[-1]["name"] = EVIL
        for result in (lambda: self.bench(records), lambda: self.held(EVIL)):
            walk = Tags()
            walk.feed(self.draw(result())[1])
            self.assertEqual((walk.open, walk.names.count("script")), ([], 1))
            self.assertNotIn("onerror", dict(walk.attributes))

    def test_what_is_not_whole_is_refused(self):
        path = self.held()
        with open(path, encoding="utf-8") as file:
            whole = file.read()
        for wrong in (whole.replace('"plain": ', '"plain": -', 1), whole.split("\n", 1)[1], whole.rsplit("\n", 2)[0], ""):
            self.assertNotEqual(wrong, whole)
            with open(path, "w", encoding="utf-8") as file:
                file.write(wrong)
            self.assert_refused(path)
        shutil.copy(page_test.golden("bench"), path)
        self.assert_refused(path, "--junit", "junit.xml")

    def assert_refused(self, path, *words):
        run = subprocess.run([page_test.ATTEST, "report", path, *words], cwd=self.cwd, capture_output=True, text=True, check=False)
        self.assertEqual((run.returncode, run.stderr.count("bench.jsonl")), (2, 1), run.stderr)

    def test_a_folder_that_cannot_be_made_is_told_before_the_measurement(self):
        with open(os.path.join(self.cwd, "file"), "w", encoding="utf-8"):
            pass
        for words in (("bench", "oracle", "--out", "file/x"), ("report", self.held(), "--out", "file/x")):
            run = subprocess.run([page_test.ATTEST, *words], cwd=self.cwd, capture_output=True, text=True, check=False, timeout=20)
            self.assertEqual((run.returncode, run.stdout), (2, ""))
            self.assertIn("--out file/x: cannot be made", run.stderr)


@unittest.skipUnless(browser.program(), "no chromium on the PATH: apt-get install chromium")
class InABrowser(Measured, page_test.BrowserTest):
    def test_a_bench_is_quiet_fits_and_is_readable(self):
        for result in (self.held(), self.bench(self.records())):
            path = self.draw(result)[0]
            self.holds_in_a_browser(path)
            for width in (390, 860, 1280):
                self.browser.open(path, width=width)
                self.assertEqual(self.browser.run(browser.OVERLAPS), [])


if __name__ == "__main__":
    page_test.ATTEST = os.path.abspath(sys.argv.pop(1))
    unittest.main()
