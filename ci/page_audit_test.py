#!/usr/bin/env python3
"""page_audit_test.py ATTEST: the page of an audit, as page_test.py looks at that of a run."""
import json
import os
import re
import subprocess
import sys
import unittest

import browser
import page_test
from page_test import EVIL, Tags


class Audited:
    def audit(self, says="a causal mask aligned top-left"):
        """Records of an audit: a bug that two laws see, one that none sees, an equivalent that is accused."""
        def bug(name, seen, **changes):
            laws = [{"law": law, "seen": int(law in seen), "cases": 3, "seconds": 0.5} for law in ("masking.causal", "rank.output")]
            rejected = {"torch.allclose": 2, "FlashAttention": 0, "ggml NMSE 5e-4": 1, "KernelBench 1e-2": 0, "cuDNN 2e-2": 0,
                        "oneDNN": 0}
            return {"record": "bug", "v": 1, "bug": name, "class": "M1", "kernel": "cpu_flash", "equivalent": False, "laws": laws,
                    "must": ["masking.causal"], "seeds": 1, "diagnosis": "right", "says": says, "seconds": 2.5,
                    "peers": {"cases": 24, "rejected": rejected}, **changes}
        records = [{"record": "audit", "v": 1, "attest": "0.2.0", "catalogue": "ab", "seed": "1", "cases": 120, "cases_elsewhere": 30, "cases_simulated": 4, "seeds": 1, "whole": True},
                   bug("M001", ["masking.causal", "rank.output"]), bug("M002", []), bug("E01", ["rank.output"], equivalent=True, must=[]),
                   {"record": "right", "v": 1, "kernel": "cpu_decode", "peers": bug("", [])["peers"]}]
        os.makedirs(os.path.join(self.cwd, "audited"), exist_ok=True)
        path = os.path.join(self.cwd, "audited", "audit.jsonl")
        with open(path, "w", encoding="utf-8") as out:
            out.writelines(json.dumps(record) + "\n" for record in records)
        return path


class Bytes(Audited, page_test.PageTest):
    def test_an_audit_says_what_escaped_first(self):
        for result in (self.audit(), os.path.dirname(self.audit())):
            _, text = self.draw(result)
            self.assertIn("1 of 2</span> planted bugs", text.replace("\u202f", " ").replace("\u00a0", " "))
            order = [text.index(part) for part in ("seen by no law", "accused by rank.output", "torch.allclose", "Each bug")]
            self.assertEqual(order, sorted(order))
            matrix = text.partition('id="matrix"')[2].partition("</section>")[0]
            self.assertEqual(re.findall(">([^<>]+)</text>", matrix), ["masking", "rank", "M001"])  # families across, bugs down
            squares = [(len(re.findall("M", path)), colour) for path, colour in re.findall(r'<path d="([^"]*)" fill="var\(--(s\d)\)"', matrix)]
            self.assertEqual(squares, [(2, "s1"), (2, "s3"), (1, "s5")])
        _, text = self.draw(self.audit(EVIL), "evil")
        walk = Tags()
        walk.feed(text)
        self.assertEqual(walk.open, [])
        self.assertEqual(walk.names.count("script"), 1)
        path = self.audit()
        with open(path, encoding="utf-8") as file:
            whole = file.read()
        for wrong in (whole.replace('"seeds": 1', '"seeds": -1', 1), whole.split("\n", 1)[1], whole.replace('"says"', '"sais"', 1), ""):
            with open(path, "w", encoding="utf-8") as file:
                file.write(wrong)
            run = subprocess.run([page_test.ATTEST, "report", path], cwd=self.cwd, capture_output=True, text=True, check=False)
            self.assertEqual((run.returncode, run.stderr.count("audit.jsonl")), (2, 1), run.stderr)


    def test_its_screen_is_no_wider_than_a_screen(self):
        run = subprocess.run([page_test.ATTEST, "audit", "C02", "--match", "reference.output", "--cases", "1"], cwd=self.cwd, check=True,
                             capture_output=True, text=True, env=dict(os.environ, COLUMNS="80"))
        self.assertIn("1 of 1 planted bug seen by a law", run.stdout)
        self.assertEqual([line for line in run.stdout.splitlines() if len(line) > 80], [])


@unittest.skipUnless(browser.program(), "no chromium on the PATH: apt-get install chromium")
class InABrowser(Audited, page_test.BrowserTest):
    def test_an_audit_is_quiet_fits_and_is_readable(self):
        self.holds_in_a_browser(self.draw(self.audit())[0])


if __name__ == "__main__":
    page_test.ATTEST = os.path.abspath(sys.argv.pop(1))
    unittest.main()
