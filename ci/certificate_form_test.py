#!/usr/bin/env python3
"""certificate_form_test.py ATTEST: what a certificate is written as: its JSON by the schema, and its pages beside it."""
import html
import json
import os
import re
import sys
import unittest

try:
    import jsonschema
except ImportError:
    jsonschema = None

import certificate_behaviour_test as shared

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Forms(shared.Campaign):
    def test_a_part_says_what_it_ends_with(self):
        run = self.attest("certify", "cpu_naive", "--profile", "small.json", "--match", "masking.causal", "--seed", "7", "--out", "part", code=3)
        self.assertIn("exit 3", run.stdout)
        self.assertNotIn("exit 0", run.stdout)

    @unittest.skipIf(jsonschema is None, "python3-jsonschema is not installed")
    def test_its_json_fits_the_schema(self):
        schemas = {}
        for name in ("certificate", "result"):
            with open(os.path.join(ROOT, "fixtures", "schema", name + ".schema.json"), encoding="utf-8") as file:
                schemas[name + ".schema.json"] = json.load(file)
        schema = schemas["certificate.schema.json"]
        check = jsonschema.Draft202012Validator(schema, resolver=jsonschema.RefResolver("", schema, store=schemas))

        def faults(change=lambda data: None):
            data = json.loads(self.bytes_of("cert", "certificate.json"))
            change(data)
            return [fault.message[:200] for fault in check.iter_errors(data)]
        self.assertEqual(faults(), [])
        self.assertEqual(len(faults(lambda data: data["laws"][0].update(verdict="passed"))), 1)
        self.assertEqual(len(faults(lambda data: data.pop("seed"))), 1)
        self.assertEqual(len(faults(lambda data: data.update(more=1))), 1)

    def test_json_and_pages_say_the_same(self):
        data = json.loads(self.bytes_of("cert", "certificate.json"))
        markdown, page = self.bytes_of("cert", "certificate.md").decode(), html.unescape(
            self.bytes_of("cert", "certificate.html").decode())
        for text in (markdown, page):
            for said in (data["title"], data["profile_sha256"], data["attest"]["catalogue"], data["result_sha256"]):
                self.assertTrue(said in text, said)
            self.assertTrue("What this certificate does not say" in text)
        self.assertTrue("<svg" in page)
        self.assertEqual(len(re.findall(r"<li>", page.split('id="limits"')[1].split("</section>")[0])),
                         len(data["does_not_say"]))
        law = next(entry for entry in data["laws"] if entry["law"] == "masking.causal")
        self.assertEqual(law["missed_share"], 1)  # 3 of 3 cases
        self.assertEqual(data["profile"]["fails"], ["violation", "structure"])


if __name__ == "__main__":
    shared.ATTEST = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
