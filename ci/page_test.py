#!/usr/bin/env python3
"""page_test.py ATTEST: report.html, as bytes and in a real browser.

As bytes: the same twice, nothing that loads, every tag closed, hostile records harmless. In a headless Chromium
(Debian's chromium; without one those tests say that they were skipped): no message in the console, nothing asked of
a network, no sideways scroll from 390 to 1280 pixels, every text readable in light and dark, the same words without
scripts, and on A4.
"""
import base64
import html.parser
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

import browser

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ATTEST = None
EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\" onmouseover='x' & \u202e\x1b[2J ://evil"


class Tags(html.parser.HTMLParser):
    """Walks the tags: each that opens closes, in order."""
    VOID = {"meta", "br", "img", "input", "link", "hr"}

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.names, self.attributes = [], [], []

    def handle_starttag(self, tag, attributes):
        self.names.append(tag)
        self.attributes += attributes
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.names.append(tag)
        self.attributes += attributes

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()


def golden(name):
    return os.path.join(ROOT, "ci", "golden", name + ".jsonl")


class PageTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.cwd = self.folder.name

    def tearDown(self):
        self.folder.cleanup()

    def draw(self, result, out="page"):
        subprocess.run([ATTEST, "report", result, "--out", out], cwd=self.cwd, check=True, capture_output=True)
        path = os.path.join(self.cwd, out, "report.html")
        with open(path, encoding="utf-8") as file:
            return path, file.read()

    def altered(self, name, change):
        """The records of a golden run, each changed."""
        self.number = getattr(self, "number", 0) + 1
        path = os.path.join(self.cwd, f"altered{self.number}.jsonl")
        with open(golden(name), encoding="utf-8") as file, open(path, "w", encoding="utf-8") as out:
            for line in file:
                record = json.loads(line)
                if change(record) is not False:
                    out.write(json.dumps(record, sort_keys=True) + "\n")
        return path

    def with_maps(self):
        """Each counterexample with the map of its case as found, the widest an odd number of blocks wide."""
        def change(record):
            if record["record"] == "counterexample":
                rows = [f"{n:0127o}"[::-1].replace("7", "0") for n in range(100, 228)]
                record["map"] = {"batch": 0, "head": 1, "levels": rows, "rows": 128, "cols": 127}
            if record["record"] == "law" and record["cases"]:
                record["largest"] = {"len_kv": 257}
        return self.altered("check_fail", change)

    def hostile(self):
        def change(record):
            if record["record"] == "run":
                record["kernel"].update(name=EVIL, version=EVIL, typed=EVIL)
            if record["record"] == "law":
                record["statement"] = EVIL
                if record["reason"]:
                    record["reason"] = EVIL
                if record["cases"]:
                    record["refusals"] = {EVIL: 3}
            if record["record"] == "cause":
                record["title"] = EVIL
            if record["record"] == "counterexample":
                record["problem"] = EVIL
                record["at"]["name"] = EVIL
                record["diagnosis"].update(says=EVIL, declared=EVIL)
                record["boundary"].update(says=EVIL, axes=[EVIL, EVIL])
                for step in record["shrink"]["steps"]:
                    step.update(change=EVIL, line=EVIL)
        return self.altered("check_fail", change)


class Bytes(PageTest):
    def test_the_same_records_give_the_same_bytes(self):
        self.assertEqual(self.draw(golden("check_fail"))[1], self.draw(golden("check_fail"), "again")[1])

    def test_it_says_what_the_records_say(self):
        result = self.with_maps()
        _, text = self.draw(result)
        with open(result, encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
        for record in records:
            if record["record"] == "law":
                self.assertTrue(record["law"].split(".")[1] in text, record["law"])
            if record["record"] == "counterexample":
                self.assertTrue(record["id"] in text, record["id"])
        for part in ("Where it fails", "How it was shrunk", "The case as found", "must read, does not",
                     "What was covered", "largest judged", "attest check"):
            self.assertTrue(part in text, part)
        _, holds = self.draw(golden("check_pass"))
        self.assertTrue("Nearest to the bound" in holds)
        self.assertFalse("cause1" in holds)

    def test_a_statistic_is_told_where_it_decides(self):
        def change(record):
            if record.get("law") == "masking.causal" and record["record"] == "law":
                record["statistic"] = {"name": "share", "value": 1.75, "threshold": 21.5, "false_positive_rate": 1e-9, "samples": 9}
        cells = self.draw(self.altered("check_fail", change))[1].replace("\u202f", " ")
        self.assertNotIn("statistic 1.75", cells)  # it is violated, and not by that
        self.assertIn("statistic 1.75, threshold 21.5", self.draw(self.altered("check_pass", change), "holds")[1])

    def test_nothing_is_loaded(self):
        for name in ("check_fail", "check_pass"):
            _, text = self.draw(golden(name))
            self.assertTrue("default-src 'none'" in text)
            self.assertEqual(re.findall(r"(?i)https?:|url\(|@import|<link|<iframe|<object", text), [])
            for source in re.findall(r'\ssrc="([^"]{0,30})', text):
                self.assertTrue(source.startswith("data:image/png;base64,"), source)

    def test_every_tag_is_closed(self):
        for name in ("check_fail", "check_pass"):
            walk = Tags()
            walk.feed(self.draw(golden(name))[1])
            self.assertEqual(walk.open, [])

    def test_hostile_text_stays_text(self):
        _, text = self.draw(self.hostile())
        walk, calm = Tags(), Tags()
        walk.feed(text)
        calm.feed(self.draw(golden("check_fail"), "calm")[1])
        self.assertEqual(walk.open, [])
        self.assertEqual(walk.names.count("script"), 1)
        self.assertEqual(set(walk.names), set(calm.names))
        self.assertEqual({name for name, _ in walk.attributes}, {name for name, _ in calm.attributes})
        self.assertEqual(re.findall("[\u202a-\u202e\u2066-\u2069\x1b]", text), [])

    def test_pages_of_little_and_of_much(self):
        self.draw(self.altered("check_pass", lambda r: r["record"] in ("run", "end")))
        _, cut = self.draw(self.altered("check_fail", lambda r: r["record"] in ("run", "law", "case")), "cut")
        self.assertTrue("Not complete" in cut and "attest check ./libmine.so --resume" in cut)

    def test_the_map_is_a_png_of_its_size(self):
        result = self.with_maps()
        _, text = self.draw(result)
        with open(result, encoding="utf-8") as file:
            maps = [r["map"] for r in map(json.loads, file) if r["record"] == "counterexample"]
        pictures = [base64.b64decode(data) for data in re.findall(r"base64,([^\"]+)", text)]
        self.assertTrue(pictures)
        for data in pictures:
            self.assertEqual(data[:8], b"\x89PNG\r\n\x1a\n")
            at, pixels, width, height = 8, b"", 0, 0
            while at < len(data):
                size, kind = struct.unpack(">I4s", data[at:at + 8])
                body = data[at + 8:at + 8 + size]
                self.assertEqual(struct.unpack(">I", data[at + 8 + size:at + 12 + size])[0], zlib.crc32(kind + body))
                if kind == b"IHDR":
                    width, height = struct.unpack(">II", body[:8])
                if kind == b"IDAT":
                    pixels = zlib.decompress(body)
                at += 12 + size
            stride = (width + 1) // 2 + 1
            rows = [pixels[n * stride + 1:(n + 1) * stride].hex()[:width] for n in range(height)]
            self.assertIn(rows, [one["levels"] for one in maps])


class BrowserTest(PageTest):
    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser().__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()

    def holds_in_a_browser(self, path):
        walk = Tags()
        with open(path, encoding="utf-8") as file:
            walk.feed(file.read())
        self.assertEqual(walk.open, [])
        for width, dark in ((390, False), (1280, True)):
            self.browser.open(path, width=width, dark=dark)
            self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), width)
            self.assertEqual(self.browser.run(browser.CONTRAST)[1], [])
            self.is_quiet_and_loads_nothing(path)
        self.prints_on_a4()

    def is_quiet_and_loads_nothing(self, path):
        for event in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded", "Page.javascriptDialogOpening"):
            self.assertEqual(self.browser.of(event), [])
        asked = [e["request"]["url"] for e in self.browser.of("Network.requestWillBeSent")]
        self.assertEqual([url for url in asked if not url.startswith("data:")], ["file://" + path])

    def prints_on_a4(self):
        # What is left between the margins, in the browser's pixels: all columns, none of which is cut.
        self.browser.ask("Emulation.setEmulatedMedia", media="print")
        self.browser.ask("Emulation.setDeviceMetricsOverride", width=688, height=1016, deviceScaleFactor=1, mobile=False)
        cut = "[...document.querySelectorAll('html,.scroll')].filter(e => e.scrollWidth > e.clientWidth && !e.closest('details')).map(e => e.innerText.slice(0, 60))"
        self.assertEqual(self.browser.run(cut), [])
        gone = "[...document.querySelectorAll('.hide-s')].filter(e => getComputedStyle(e).display === 'none').length"
        self.assertEqual(self.browser.run(gone), 0)
        # What is kept whole on a page leaves the rest of the page before it blank.
        kept = "[...document.querySelectorAll('section')].filter(e => getComputedStyle(e).breakInside !== 'auto').map(e => e.id)"
        self.assertEqual(self.browser.run(kept), [])
        self.browser.ask("Emulation.setEmulatedMedia", media="")
        pdf = base64.b64decode(self.browser.ask("Page.printToPDF", preferCSSPageSize=True)["data"])
        boxes = re.findall(rb"/MediaBox\s*\[([^\]]+)\]", pdf)
        self.assertTrue(boxes)
        for box in boxes:
            _, _, width, height = map(float, box.split())
            self.assertAlmostEqual(width, 595, delta=1.5)
            self.assertAlmostEqual(height, 842, delta=1.5)


@unittest.skipUnless(browser.program(), "no chromium on the PATH: apt-get install chromium")
class InABrowser(BrowserTest):
    def test_it_is_quiet_and_loads_nothing(self):
        for result in (golden("check_fail"), golden("check_pass"), self.hostile()):
            path, _ = self.draw(result)
            self.browser.open(path)
            self.browser.run("document.querySelector('th[data-sort]').click()")
            self.is_quiet_and_loads_nothing(path)

    def test_it_fits_every_width(self):
        for result in (golden("check_fail"), golden("check_pass"), self.hostile()):
            path, _ = self.draw(result)
            for width in (390, 860, 1280):
                self.browser.open(path, width=width)
                self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), width, result)
                self.assertGreater(self.browser.run("document.body.scrollHeight"), 900)
                self.assertEqual(self.browser.run(browser.OVERLAPS), [])

    def test_every_text_is_readable_in_light_and_dark(self):
        for name in ("check_fail", "check_pass"):
            path, _ = self.draw(golden(name))
            for dark in (False, True):
                self.browser.open(path, dark=dark)
                seen, bad = self.browser.run(browser.CONTRAST)
                self.assertGreater(seen, 100)
                self.assertEqual(bad, [], f"{name} dark={dark}")

    def test_a_certificate_is_quiet_fits_and_is_readable(self):
        subprocess.run([ATTEST, "certify", "cpu_naive", "--cases", "2", "--seed", "7", "--match", "reference.*", "--out",
                        "cert"], cwd=self.cwd, stdout=subprocess.DEVNULL, check=False, timeout=120)
        path = os.path.join(self.cwd, "cert", "certificate.html")
        self.holds_in_a_browser(path)
        size = "getComputedStyle(document.querySelector('%s')).fontSize"
        self.assertEqual(self.browser.run(size % "#limits li"), self.browser.run(size % "#judged p, body"))

    def test_it_reads_the_same_without_scripts(self):
        path, _ = self.draw(golden("check_fail"))
        words = "document.querySelector('#main').innerText.replace(/\\s+/g, ' ')"
        self.browser.open(path, script=False)
        without = self.browser.ask("Runtime.evaluate", expression=words, returnByValue=True)["result"].get("value")
        self.browser.open(path)
        having = self.browser.run(words)
        tools = {"all", "violated", "judged", "not", "copy", "rows"}
        missing = [w for w in set(having.split()) - set((without or "").split()) if w not in tools and not w.isdigit()]
        self.assertEqual(missing, [])

    def test_it_prints_on_a4(self):
        path, _ = self.draw(golden("check_fail"))
        self.browser.open(path)
        self.prints_on_a4()


if __name__ == "__main__":
    ATTEST = os.path.abspath(sys.argv.pop(1))
    unittest.main()
