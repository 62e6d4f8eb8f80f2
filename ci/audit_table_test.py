#!/usr/bin/env python3
"""audit_table_test.py: the README's table of an audit is made from the records in fixtures/audit.

`audit_table_test.py --print` writes the table.
"""
import json
import os
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RECORDS = os.path.join(ROOT, "fixtures", "audit", "audit.jsonl")


def records():
    with open(RECORDS, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    return lines[0], [line for line in lines if line["record"] == "bug"], [line for line in lines if line["record"] == "right"]


def seen_by(bug):
    return [law["law"] for law in bug["laws"] if law["seen"] == bug["seeds"]]


def table():
    head, bugs, right = records()
    planted = [bug for bug in bugs if not bug["equivalent"]]
    equivalents = [bug for bug in bugs if bug["equivalent"]]
    tried = sum(law["cases"] for bug in equivalents for law in bug["laws"])
    calls = sum(kernel["peers"]["cases"] for kernel in right)
    rows = [f"| attest {head['attest']}, seed {head['seed']} | planted bugs seen, of {len(planted)} | right kernels rejected |",
            "|---|---|---|",
            f"| the laws | {sum(1 for bug in planted if seen_by(bug))} |"
            f" in 0 of {tried} cases of {len(equivalents)} changes that are none |"]
    for rule in right[0]["peers"]["rejected"]:
        seen = sum(1 for bug in planted if bug["peers"]["rejected"][rule])
        rejected = sum(kernel["peers"]["rejected"][rule] for kernel in right)
        rows.append(f"| {rule} | {seen} | in {rejected} of {calls} calls |")
    asked = [bug for bug in planted if bug["diagnosis"]]
    named = sum(1 for bug in asked if bug["diagnosis"] == "right")
    return "\n".join(rows) + f"\n\nOf {len(asked)} bugs whose row says what the diagnosis has to find, {named} are named so.\n"


class AuditTable(unittest.TestCase):
    def test_it_was_whole_and_nothing_escaped(self):
        head, bugs, _ = records()
        self.assertTrue(head["whole"])
        self.assertEqual([bug["bug"] for bug in bugs if bug["equivalent"] and any(law["seen"] for law in bug["laws"])], [])
        self.assertEqual([bug["bug"] for bug in bugs if not bug["equivalent"] and not seen_by(bug)], [])
        self.assertEqual([(bug["bug"], law) for bug in bugs for law in bug["must"] if law not in seen_by(bug)], [])
        laws = {law["law"] for bug in bugs for law in bug["laws"]}
        self.assertEqual(laws - {law for bug in bugs if not bug["equivalent"] for law in seen_by(bug)}, set())
        self.assertEqual([bug["bug"] for bug in bugs if bug["diagnosis"] in ("wrong", "silent")], [])

    def test_the_readme_has_its_table(self):
        with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
            self.assertIn(table(), file.read())


if __name__ == "__main__":
    if sys.argv[1:] == ["--print"]:
        print(table(), end="")
    else:
        unittest.main()
