#!/usr/bin/env python3
"""usage_test.py ATTEST: wrong usages, each refused in one sentence with exit code 2; what shells complete; the manual."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ATTEST = None
CASE = "b1 hq1 hkv1 tq2 tk1 d1 f32"

# A command line, as a shell would split it at "|", and what the first line says of it.
WRONG = """
 | no command
chekc | no command chekc; did you mean check?
replay|--out|nosuch | replay: --out nosuch: no such folder
explain|b1 hq1 hkv1 tq1 tk1 d1 f32|--kernel|cpu_flash|--law|rank.scoresx | --law rank.scoresx: no law of this name; did you mean rank.scores?
help|chekc | no command chekc; did you mean check?
--bogus | no option --bogus
-v | no option -v
check | check: no kernel named
check|cpu_flsh | did you mean cpu_flash?
check|cpu_flash|cpu_naive | one argument too many for check: cpu_naive
check|./none.so | ./none.so: there is no such file
check|. | no built-in kernel
check|/dev/null | not a .so and not a .json
check|python:nomodule:f | No module named nomodule
check|python:math | math has no function forward
check|python:math:nothing | math has no function nothing
check|exec:./none | there is no such file
check|mutant:M999 | mutant:M999
check|mutant: | no built-in kernel
check| | KERNEL needs a value
check|cpu_flash|--seed|x | --seed x: a whole number
check|cpu_flash|--seed|-1 | --seed -1: a whole number
check|cpu_flash|--seed|18446744073709551616 | a whole number from 0
check|cpu_flash|--seed | --seed needs one value
check|cpu_flash|--seed| | --seed needs a value
list|laws|masking | list laws masking: no law of this name
replay|/etc/passwd | /etc/passwd: this is no case file
check|exec: | exec: names no program
check|python:: | python:: names no module
check|cpu_flash|--time|0s | --time 0s: more than 0s, and at most 277777h
check|cpu_flash|--time|99999999h | more than 0s, and at most 277777h
check|cpu_flash|--cases|99999999999999999999 | a whole number from 1 to 9223372036854775807
fixture|/dev/null/x.json|b1 hq1 hkv1 tq2 tk1 d1 f32|--story|s|--law|reference.output | /dev/null is no folder
check|cpu_flash|--cases|0 | --cases 0: a whole number
check|cpu_flash|--cases|1.5 | --cases 1.5
check|cpu_flash|--cases|many | --cases many
check|cpu_flash|--jobs|0 | --jobs 0
check|cpu_flash|--jobs|two | --jobs two
check|cpu_flash|--time|0 | --time 0: a number and a unit
check|cpu_flash|--time|60 | --time 60: a number and a unit
check|cpu_flash|--time|60x | --time 60x: a number and a unit
check|cpu_flash|--time| | --time needs a value
check|cpu_flash|--timeout|0s | --timeout 0s: more than 0s
check|cpu_flash|--timeout|-1s | --timeout -1s: a number and a unit
check|cpu_flash|--shard|2/2 | --shard 2/2: i/n with 0 <= i < n
check|cpu_flash|--shard|1 | --shard 1: i/n
check|cpu_flash|--shard|a/b | --shard a/b: i/n
check|cpu_flash|--match|nothing.* | matches none
check|cpu_flash|--match|mask.* | did you mean masking.*?
check|cpu_flash|--match| | --match needs a value
check|cpu_flash|--profile|quik | did you mean quick?
check|cpu_flash|--profile|none.json | --profile none.json: no such file
check|cpu_flash|--profile|. | no such profile
check|cpu_flash|--record|all | --record all
check|cpu_flash|--color|blue | --color blue: one of auto, always, never
check|cpu_flash|--source|file | --source file: FILE:LINE
check|cpu_flash|--source|f.c:x | --source f.c:x: FILE:LINE
check|cpu_flash|--out|/proc/none | --out /proc/none
check|cpu_flash|--out|/dev/null | --out /dev/null
check|cpu_flash|--junit|/proc/x.xml | --junit /proc/x.xml: cannot be written
check|cpu_flash|--junit|/dev/null | --junit /dev/null: is no plain file
check|cpu_flash|--summary|/dev/stdout | --summary /dev/stdout: is no plain file
check|cpu_flash|--junit|none/x.xml | --junit none/x.xml: no folder none
check|cpu_flash|--sarif| | --sarif needs a value
check|cpu_flash|--resume|none | --resume none: has no result.jsonl
check|cpu_flash|--bogus | no option --bogus for check
check|cpu_flash|--sead|3 | did you mean --seed?
check|cpu_flash|--env|A=B | --env A=B: the name of a variable
check|cpu_flash|--env| | --env needs a value
replay|deadbeef | no case stored in attest-out
replay|none.json | none.json: cannot be read
replay|b1 hq1 hkv1 tq2 tk1 d1 f32 | which kernel?
replay|b1 hq1 hkv1 tq2 tk1 d1 f32|--kernel|cpu_flash|--law|nolaw | --law nolaw: no law of this name
replay|b1 hq3 hkv2 tq2 tk1 d1 f32|--kernel|cpu_flash | hkv2 does not divide hq3
replay|b1 hq1 hkv1 tq2 tk1 d1 f33|--kernel|cpu_flash | did you mean f32?
replay|b99999999999999999999 hq1 hkv1 tq2 tk1 d1 f32|--kernel|cpu_flash | is not a whole number
replay|b1|hq1 | one argument too many for replay: hq1
explain | explain: no case named
explain|deadbeef | no case stored in attest-out
list|things | list things: no such list
list|kernels|--match|foo* | --match "foo*" matches none of the kernels
list|fixtures|--match|foo* | matches none of the fixtures
list|laws|no.law | no.law: no law of this name
list|laws|a|b | one argument too many for list: b
describe | describe: no kernel named
describe|cpu_flsh | did you mean cpu_flash?
certify | certify: no kernel named
certify|cpu_flash|--profile|nope | no such profile
report | report: no result named
report|none | none: no such file
merge | merge: no shards named
merge|none | none: no such file
verify | verify: no certificate named
verify|none | no certificate.json
key | key
key|old|mine | key
key|new | key
gate | gate: needs --baseline and --candidate
gate|--baseline|cpu_flash | gate: needs --baseline and --candidate
gate|--baseline|none|--candidate|cpu_flash | no built-in kernel
gate|--baseline|cpu_flash|--candidate|cpu_naive|--accuracy|0.5 | --accuracy 0.5: a factor
gate|--baseline|cpu_flash|--candidate|cpu_naive|--time|5s | gate: --time and --shard
gate|--baseline|cpu_flash|--candidate|cpu_naive|--waivers|none | --waivers none: cannot be read
audit|M999 | no planted bug M999
audit|--cases|x | --cases x: a whole number
audit|C02|--match|maskin.* | matches none of
gate|--baseline|cpu_flash|--candidate|cpu_flash|--waivers|. | --waivers .: is a folder
audit|C02|--out|/proc/none | --out /proc/none
bench | say what to measure
bench|kernel | say what to measure
bench|oracle|--instructions|SSE9 | no instruction set SSE9
fixture | fixture: a file and a case
fixture|x.json | fixture: a file and a case
fixture|x.json|b1 hq1 hkv1 tq2 tk1 d1 f32 | no --story
new | new: what kind, and what name?
new|fortran|mine | new fortran: no kind of kernel
new|c | new: what kind, and what name?
new|c|My-Kernel | a name of small letters
new|c|int | new int: a word that the language or an import has taken
new|python|numpy | new numpy: a word
completion | completion: no shell
completion|fish | completion: no shell fish
completion|bash|zsh | one argument too many for completion
"""


class Usage(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def run_in(self, *command, **more):
        return subprocess.run(command, cwd=self.folder.name, capture_output=True, text=True, timeout=100,
                              check=False, env=dict(os.environ, COLUMNS="400", NO_COLOR="1", **more))

    def test_every_mistake_is_one_sentence(self):
        for line in WRONG.strip("\n").splitlines():
            typed, _, says = line.rpartition(" | ")
            words = typed.rstrip(" ").split("|") if typed.strip() else []
            with self.subTest(line):
                run = self.run_in(ATTEST, *words)
                self.assertEqual((run.returncode, run.stdout), (2, ""), run.stderr)
                first, *rest = run.stderr.splitlines()
                self.assertTrue(first.startswith("attest: "), first)
                self.assertIn(says, first)
                self.assertTrue(all(more.startswith("        ") for more in rest), run.stderr)
                self.assertEqual(os.listdir(self.folder.name), [])

    def test_help_is_help(self):
        for words in (["help"], ["--help"]):
            self.assertIn("judge a kernel by the laws", self.run_in(ATTEST, *words).stdout)
        self.assertEqual(self.run_in(ATTEST, "help", "check").stdout, self.run_in(ATTEST, "check", "--help").stdout)
        commands = re.findall(r"^  (\w+) ", self.run_in(ATTEST, "help").stdout.partition("\nSubcommands:\n")[2], re.M)
        self.assertIn("certify", commands)
        for words in ([], *([command] for command in commands)):
            self.assertEqual([line for line in self.run_in(ATTEST, "help", *words).stdout.splitlines() if len(line) > 80], [])

    def completed(self, *words):
        script = ('source <("$0" completion bash); attest() { "$0" "$@"; }; COMP_WORDS=(attest "$@"); '
                  'COMP_CWORD=$#; COMP_WORDS[0]="$0"; _attest; printf "%s\\n" "${COMPREPLY[@]}"')
        run = self.run_in("bash", "-c", script, ATTEST, *words)
        self.assertEqual(run.stderr, "")
        return run.stdout.split()

    def test_bash_completes(self):
        self.assertIn("check", self.completed("che"))
        self.assertIn("--profile", self.completed("check", "--pro"))
        self.assertEqual(self.completed("check", "cpu_flash", "--profile", "qui"), ["quick"])
        self.assertIn("cpu_flash", self.completed("check", "cpu_f"))
        self.assertEqual(self.completed("check", "--match", "reference.outp"), ["reference.output"])
        self.assertEqual(self.completed("check", "--color", "al"), ["always"])
        self.assertIn("M001", self.completed("audit", "M00"))
        self.assertEqual(self.completed("new", "cu"), ["cuda"])
        self.assertEqual(self.completed("list", "ker"), ["kernels"])
        self.run_in(ATTEST, "check", "mutant:M001", "--seed", "3", "--cases", "3", "--match", "masking.influence")
        stored = os.listdir(os.path.join(self.folder.name, "attest-out", "cases"))
        self.assertEqual(sorted(self.completed("replay", stored[0][:4])), sorted({stored[0][:8]}))

    def test_zsh_takes_its_script(self):
        if shutil.which("zsh") is None:
            self.skipTest("no zsh here")
        script = self.run_in(ATTEST, "completion", "zsh").stdout
        with open(os.path.join(self.folder.name, "_attest"), "w", encoding="utf-8") as file:
            file.write(script)
        run = self.run_in("zsh", "-n", "_attest")
        self.assertEqual((run.returncode, run.stderr), (0, ""))

    def test_the_manual_has_every_command(self):
        page = self.run_in(ATTEST, "manual").stdout
        for command in ("check", "replay", "verify", "merge", "completion"):
            self.assertIn(".SS attest " + command + "\n", page)
        self.assertIn("\\-\\-profile", page)
        root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
        for subject, path in (("interface", "kernels/interface/README.md"), ("problem", "reference/problem/README.md"),
                              ("protocol", "kernels/worker/PROTOCOL.md")):
            with open(os.path.join(root, path), encoding="utf-8") as file:
                self.assertEqual(self.run_in(ATTEST, "manual", subject).stdout, file.read())
        manifest = self.run_in(ATTEST, "manual", "manifest").stdout
        self.assertTrue(manifest.startswith("## The manifest\n"), manifest[:40])
        self.assertIn("\n### What it takes\n", manifest)
        takes = self.run_in(ATTEST, "manual", "takes").stdout
        self.assertTrue(manifest.count(takes) == 1 and "### Numerics" not in takes, takes[:40])
        refused = self.run_in(ATTEST, "manual", "manifests")
        self.assertEqual((refused.returncode, refused.stdout), (2, ""))
        self.assertIn("attest manual with one of interface, ", refused.stderr)
        named = self.run_in(ATTEST, "help", "problem").stderr
        self.assertEqual(named, "attest: no command problem; it is a manual\n        attest manual problem\n")
        if shutil.which("groff"):
            run = self.run_in("bash", "-c", '"$0" manual | groff -man -ww -Tascii > /dev/null', ATTEST)
            self.assertEqual((run.returncode, run.stderr), (0, ""))


if __name__ == "__main__":
    ATTEST = os.path.abspath(sys.argv.pop(1))
    unittest.main()
