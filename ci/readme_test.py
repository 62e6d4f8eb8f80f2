#!/usr/bin/env python3
"""readme_test.py ATTEST: what the pages show is what comes.

Every fenced block of PAGES is a command that is run here, what one of them prints, or stands in NOT_RUN with the reason.
What is shown is held against what is printed line by line, to the byte but for times and days; a line `...` stands for
lines that are left out, `...` at the end of a line for the rest of it. `ci/attest` is the command just built: building is
build_test.py's.
"""
import collections
import difflib
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ATTEST = None
PAGES = ("README.md", "kernels/interface/README.md", "ci/README.md", "ci/actions/README.md")
COMMAND = re.compile(r"(ci/|attest |cc |\. ci/|kernels/adapters/|PYTHONPATH=)")

# Lines of commands, and first lines of other blocks.
NOT_RUN = {
    "ci/test": "builds everything and runs every test",
    "ci/attest install": "builds everything and writes into the home folder; package_test.py installs",
    "kernels/adapters/set_up onnxruntime": "asks a package registry",
    "kernels/adapters/set_up torch": "asks a package registry",
    "PYTHONPATH=kernels/adapters ci/attest check python:onnxruntime_attention:forward --python .venv/bin/python":
        "needs ONNX Runtime from a package registry; adapters_test.py runs it where that is",
    "PYTHONPATH=kernels/adapters ci/attest check python:torch_sdpa.math --python .venv/bin/python --profile quick --seed 31":
        "needs PyTorch from a package registry; adapters_test.py runs it where that is",
    "● HOLDS   81 laws, 9 533 cases, 52.3 million elements, 27.9 s   exit 0": "is printed by PyTorch's adapter",
    "  sanitizer       memcheck: Invalid __global__ write of size 4 bytes at": "needs a GPU and compute-sanitizer",
    "strategy: {fail-fast: false, matrix: {part: [0, 1, 2, 3]}}": "is for GitHub's runner",
    "on: {push: {branches: [main]}, pull_request: {}}": "is for GitHub's runner; actions_test.py runs what it runs",
    "include: {local: ci/attest.yml}   # a copy of attest/ci/actions/gitlab.yml: GitLab includes nothing out of a submodule":
        "is for GitLab's runner; actions_test.py runs what it runs",
}

# In order, each in a folder that stands for a checkout: the line as a page has it, or what no page has and it needs; its
# exit code; what is added so that it takes seconds. ID is the case that the run before was replayed by.
Run = collections.namedtuple("Run", "folder line code more", defaults=(0, ""))
FEW = "--cases 2 --match reference.output --match masking.causal"
CERTIFY = "ci/attest certify cpu_flash --profile quick --seed 20261120 --sign release --out certificate"
VERIFY = "ci/attest verify certificate --public-key release.pub --rerun 200 --seed 1 --kernel cpu_flash"
WRONG = "ci/attest check mutant:M001 --seed 20261120"
RACE = "ci/attest check mutant:G01"
GATE = "ci/attest gate --baseline certificate --candidate attest-out"
COMPILE = "cc -O2 -shared -fPIC -I kernels/interface -o mine.so kernels/examples/attention.c kernels/examples/attention_glue.c -lm"
RUNS = (
    Run("first", ". ci/env", more="&& attest --version"),
    Run("first", "ci/attest check cpu_flash", more=FEW),
    Run("first", COMPILE),
    Run("first", "ci/attest check ./mine.so", more=FEW),
    Run("first", "ci/attest gate --baseline attest-out --candidate ./mine.so --waivers waivers.json"),
    Run("first", "ci/attest check ./mine.so -x", more=FEW),
    Run("first", "ci/attest check ./mine.so --junit junit.xml --sarif attest.sarif --code-quality quality.json "
                 "--source src/mine.cu:118 --report", more=FEW),
    Run("first", "ci/attest certify ./mine.so --profile serving --out certificate", 3, FEW),
    Run("first", "for n in 0 1; do ci/attest check ./mine.so --seed 1 --shard $n/2 --out shard-$n " + FEW + "; done"),
    Run("first", "ci/attest merge shard-* --out merged"),
    Run("first", "ci/attest check python:my_module:forward", more=FEW),
    Run("first", "ci/attest check exec:./my_program", more="--cases 1 --match reference.output"),
    Run("first", "attest new c mine"),
    Run("first", "cc -O2 -shared -fPIC -o mine.so mine.c mine_glue.c -lm"),
    Run("first", "attest check ./mine.so", more=FEW),
    Run("certificate", "ci/attest key new release"),
    Run("certificate", CERTIFY),
    Run("certificate", VERIFY),
    Run("certificate", WRONG, 1),
    Run("certificate", GATE, 1),
    Run("certificate", "ci/attest replay ID", 1),
    Run("certificate", "ci/attest explain ID", 1),
    Run("certificate", COMPILE),
    Run("certificate", "ci/attest replay --kernel ./mine.so", 3),  # it takes none of them
    Run("certificate", "ci/attest list laws masking.causal"),
    Run("race", RACE, 1),
)

# Blocks that show what is printed, by their first line. A certificate's screen is that of a check.
SHOWN = {
    "attest check  cpu_flash 1  built in  profile quick  seed 20261120": CERTIFY,
    "attest verify  certificate  cpu_flash 1": VERIFY,
    "✕ VIOLATED  masking.influence and 35 more laws, one cause": WRONG,
    "attest gate  cpu_flash 1 → mutant:M001 1  profile quick  seed 20261120": GATE,
    "✕ VIOLATED  reference.output and 7 more laws, one cause": RACE,
    "::error file=flash_mma.cuh,line=200,title=attest reference.output and 7 more::the kernel returned an error: shared_race: ...":
        RACE,
}
WAIVERS = '{"waivers": '  # a file that a command above reads

# Errors of the built-in kernels' answers follow from the widths of this processor's vectors: elsewhere they differ.
WRITTEN_ON = "avx2"
TIMES = (r"(\d+ min )?\d+(\.\d+)? s\b", r"\d{4}-\d\d-\d\d", r"\S+/result\.jsonl")
MARGINS = (r"worst <?\d\.\d{3}", r"  \w+\.\w+ +<?\d\.\d{3}  b\d.*")


def blocks(text):
    """The fenced blocks of a page, as lists of lines."""
    return [found[1].splitlines() for found in re.finditer(r"(?ms)^```\w*\n(.*?)^```$", text)]


def commands(block):
    return [line.split("  #")[0].rstrip() for line in block]


def is_commands(block):
    return all(COMMAND.match(line) for line in block)


def masked(line, patterns):
    for pattern in patterns:
        line = re.sub(pattern, "?", line)
    return line


def same(shown, printed, patterns):
    if shown.endswith(" ..."):
        return masked(printed, patterns).startswith(masked(shown[:-4], patterns))
    return masked(shown.rstrip(), patterns) == masked(printed.rstrip(), patterns)


def difference(shown, printed, patterns):
    """Where the lines shown are not those printed, in order and without gaps but for those marked; empty where they are."""
    at, anywhere, begin = 0, True, 0
    for n, line in enumerate(shown):
        if line.strip() == "...":
            anywhere = True
            continue
        if anywhere:
            begin = next((k for k in range(at, len(printed)) if same(line, printed[k], patterns)), None)
            if begin is None:
                near = difflib.get_close_matches(line, printed, 1, 0)
                return f"shown:   {line}\nprinted: {near[0] if near else 'nothing'}"
            at, anywhere = begin, False
        elif at >= len(printed) or not same(line, printed[at], patterns):
            return f"shown:   {line}\nprinted: {printed[at] if at < len(printed) else 'nothing'}\nas line {n + 1} of the block"
        at += 1
    return ""


class Readme(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.holder.cleanup)
        cls.pages = {}
        for page in PAGES:
            with open(os.path.join(ROOT, page), encoding="utf-8") as file:
                cls.pages[page] = file.read()
        cls.blocks = [(page, block) for page, text in cls.pages.items() for block in blocks(text)]
        cls.printed, cls.codes = {}, []
        for run in RUNS:
            cls.execute(run)

    @classmethod
    def checkout(cls, name):
        """What of a checkout the pages count on."""
        folder = os.path.join(cls.holder.name, name)
        if os.path.exists(folder):
            return folder
        os.makedirs(os.path.join(folder, "ci"))
        os.makedirs(os.path.join(folder, "build", "release"))
        os.symlink(os.path.dirname(ATTEST), os.path.join(folder, "build", "release", "ci"))
        os.symlink(os.path.join(ROOT, "kernels"), os.path.join(folder, "kernels"))
        examples = os.path.join(ROOT, "kernels", "examples")
        os.symlink(os.path.join(examples, "numpy_attention.py"), os.path.join(folder, "my_module.py"))
        os.symlink(os.path.join(examples, "plain_program.py"), os.path.join(folder, "my_program"))
        with open(os.path.join(ROOT, "ci", "env"), encoding="utf-8") as file:
            texts = {"env": file.read(), "attest": f'#!/bin/sh\nexec {ATTEST} "$@"\n'}
        for script, text in texts.items():
            with open(os.path.join(folder, "ci", script), "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(os.path.join(folder, "ci", script), 0o755)
        with open(os.path.join(folder, "waivers.json"), "w", encoding="utf-8") as file:
            file.writelines(line for _, block in cls.blocks for line in block if line.startswith(WAIVERS))
        return folder

    @classmethod
    def execute(cls, run):
        environment = dict(os.environ, COLUMNS="80", NO_COLOR="1", LC_ALL="C.UTF-8", CI="true")
        environment["PATH"] = os.path.dirname(ATTEST) + ":" + environment["PATH"]
        if run.line == RACE:
            environment["GITHUB_ACTIONS"] = "true"
        line = f"{run.line} {run.more}"
        if "ID" in run.line.split():
            line = line.replace("ID", re.search(r"attest replay (\w+) ", cls.printed[WRONG])[1])
        done = subprocess.run(["bash", "-c", line], cwd=cls.checkout(run.folder), capture_output=True, text=True, timeout=550,
                              env=environment, check=False)
        cls.printed[run.line] = done.stdout.replace("attest certify  ", "attest check  ")
        if done.returncode != run.code:
            cls.codes.append(f"{line} exits {done.returncode}, not {run.code}:\n{done.stdout}{done.stderr}")

    @classmethod
    def patterns(cls):
        with open(os.path.join(cls.checkout("certificate"), "certificate", "result.jsonl"), encoding="utf-8") as file:
            isa = json.loads(file.readline())["machine"]["isa"]
        return TIMES if isa == WRITTEN_ON else TIMES + MARGINS

    def test_the_commands_end_as_they_should(self):
        self.assertEqual(self.codes, [])

    def test_every_block_is_run_or_has_a_reason(self):
        known = {run.line for run in RUNS} | set(NOT_RUN)
        for page, block in self.blocks:
            lines = commands(block) if is_commands(block) else block[:1]
            for line in lines:
                with self.subTest(page=page, line=line):
                    self.assertTrue(line in (known if is_commands(block) else set(SHOWN) | set(NOT_RUN))
                                    or line.startswith(WAIVERS), "neither run, nor printed, nor in NOT_RUN")

    def test_every_row_is_of_a_block(self):
        lines = {line for _, block in self.blocks for line in (commands(block) if is_commands(block) else block[:1])}
        self.assertEqual(set(SHOWN) - lines, set())
        self.assertEqual(set(NOT_RUN) - lines, set())
        inline = {line for text in self.pages.values() for line in re.findall(r"`(ci/attest [^`]+)`", text)}
        self.assertEqual(set(SHOWN.values()) - lines - inline, set(), "no page says by which command this is printed")

    def test_what_is_shown_is_what_is_printed(self):
        for page, block in self.blocks:
            if not is_commands(block) and block[0] in SHOWN:
                with self.subTest(page=page, block=block[0]):
                    printed = self.printed[SHOWN[block[0]]].splitlines()
                    self.assertEqual(difference(block, printed, self.patterns()), "")

    def test_a_changed_line_is_seen(self):
        printed = ["one law holds", "in 1.2 s", "", "and another", "the end"]
        for shown in (["in 3.4 s", "", "and another"], ["in 1 min 53 s", "", "and another"]):
            self.assertEqual(difference(shown, printed, TIMES), "")
        self.assertEqual(difference(["one law ...", "...", "the end"], printed, TIMES), "")
        for shown in (["in 1.2 ms"], ["in 1.2 s", "and another"], ["one law", "..."], ["the end", "...", "one law holds"],
                      ["and another", "the end", "of all"], ["one law holds", "", "the end"]):
            self.assertNotEqual(difference(shown, printed, TIMES), "", shown)


if __name__ == "__main__":
    ATTEST = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=1)
