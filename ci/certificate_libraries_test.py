#!/usr/bin/env python3
"""certificate_libraries_test.py ATTEST: what a kernel's processes are made of is recorded, whenever it is loaded, and another
library is found: the kernel's own, one behind it, one that its first or a later call loads, a module imported late.
"""
import hashlib
import os
import shutil
import subprocess
import sys
import unittest

import certificate_behaviour_test as shared

KERNELS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "kernels")
GLUE, DENSE = KERNELS + "/examples/attention_glue.c", KERNELS + "/examples/attention.c"


class Libraries(shared.Campaign):
    def compile(self, library, *arguments):
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-I", KERNELS + "/interface", "-o", library, *arguments], cwd=self.cwd, check=True)

    @unittest.skipUnless(shutil.which("cc"), "no cc on the PATH")
    def test_another_library_is_refused(self):
        self.compile("mine.so", DENSE, GLUE, "-lm")
        run = ["certify", "./mine.so", "--profile", "small.json", "--seed", "7"]
        self.attest(*run, "--out", "mine", code=0)
        shutil.copy(self.path("mine.so"), self.path("other.so"))
        with open(self.path("other.so"), "ab") as file:
            file.write(b"x")
        said = shared.words(self.attest("verify", "mine", "--kernel", "./mine.so", "--rerun", "5", code=0).stdout)
        self.assertIn("5 numbers drawn and judged again", said)
        self.assertIn("another SHA-256", self.refused("mine", "--kernel", "./other.so"))
        libraries = self.records("mine")[0]["kernel"]["libraries"]
        self.assertEqual(libraries["mine.so"], hashlib.sha256(self.bytes_of("mine.so")).hexdigest())
        # Replaced while it is judged: it holds, and nothing is certified.
        more = subprocess.Popen([shared.ATTEST, *run, "--cases", "400", "--out", "swapped"], cwd=self.cwd, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        while b'"record":"case"' not in (self.bytes_of("swapped", "result.jsonl")
                                         if os.path.exists(self.path("swapped", "result.jsonl")) else b""):
            self.assertIsNone(more.poll())
        os.replace(self.path("other.so"), self.path("mine.so"))
        self.assertIn("replaced during the run: not a certificate", shared.words(more.communicate(timeout=120)[0]))
        self.assertEqual(more.returncode, 3)
        self.assertIn("another file at the end", self.refused("swapped"))

    @unittest.skipUnless(shutil.which("cc"), "no cc on the PATH")
    def test_another_library_behind_the_kernel_is_open(self):
        self.compile("libdense.so", DENSE, "-lm")
        self.compile("glue.so", GLUE, "-L.", "-ldense", "-Wl,-rpath,$ORIGIN")
        self.attest("certify", "./glue.so", "--profile", "small.json", "--seed", "7", "--out", "glue", code=0)
        self.attest("verify", "glue", "--kernel", "./glue.so", "--rerun", "5", code=0)
        self.compile("libdense.so", DENSE, "-lm", "-Wl,--build-id=0x17")
        said = shared.words(self.attest("verify", "glue", "--kernel", "./glue.so", "--rerun", "5", code=3).stdout)
        self.assertIn("files not those that were judged: libdense.so", said)

    def certified_with(self, library, when, rerun):
        """A kernel that opens `library` where `when` (C, of its arguments) is true, certified and verified; then `library` is another:
        what was judged, in bytes, and what a rerun says."""
        with open(DENSE, encoding="utf-8") as file:
            text = file.read().replace("bool causal) {", f'bool causal) {{ if ({when} && !dlopen("{self.path(library)}", RTLD_NOW)) return;')
        with open(self.path("late.c"), "w", encoding="utf-8") as file:
            file.write("#include <dlfcn.h>\n" + text)
        self.compile("late.so", "late.c", GLUE, "-lm")
        self.compile(library, "-xc", os.devnull, "-Wl,--build-id=0x17")
        judged = self.bytes_of(library)
        self.attest("certify", "./late.so", "--profile", "small.json", "--seed", "7", "--out", "late", code=0)
        self.attest("verify", "late", "--kernel", "./late.so", "--rerun", rerun, code=0)
        self.compile(library, "-xc", os.devnull, "-Wl,--build-id=0x18")
        return judged, shared.words(self.attest("verify", "late", "--kernel", "./late.so", "--rerun", rerun, code=3).stdout)

    @unittest.skipUnless(shutil.which("cc"), "no cc on the PATH")
    def test_a_library_that_the_first_call_loads_is_recorded(self):
        _, said = self.certified_with("libfirst.so", "true", "5")
        self.assertIn("files not those that were judged: libfirst.so", said)

    @unittest.skipUnless(shutil.which("cc"), "no cc on the PATH")
    def test_a_library_that_a_later_call_loads_is_recorded(self):
        judged, said = self.certified_with("liblater.so", "T < 9", "100")
        self.assertIn("files not those that were judged: liblater.so", said)
        digest = hashlib.sha256(judged).hexdigest()
        first, *_, end = self.records("late")
        self.assertNotIn("liblater.so", first["kernel"]["libraries"])
        self.assertEqual(end["libraries"]["liblater.so"], digest)
        self.assertIn(digest, self.bytes_of("late", "certificate.md").decode())

    def test_a_module_that_a_later_call_imports_is_recorded(self):
        with open(KERNELS + "/examples/numpy_attention.py", encoding="utf-8") as file:
            text = file.read()
        with open(self.path("later_module.py"), "w", encoding="utf-8") as file:
            file.write(text + "\n\nfirst = forward\n\n\ndef forward(problem, *arrays, **more):\n    if problem.len_kv > 5 and problem.causal:\n"
                       "        import later_imported  # noqa: F401\n    return first(problem, *arrays, **more)\n")
        with open(self.path("later_imported.py"), "w", encoding="utf-8") as file:
            file.write("WORD = 1\n")
        kernel = "python:later_module:forward"
        self.attest("certify", kernel, "--profile", "small.json", "--seed", "7", "--out", "module", code=0)
        first, *_, end = self.records("module")
        self.assertNotIn("later_imported", first["kernel"]["libraries"])
        self.assertEqual(end["libraries"]["later_imported"], hashlib.sha256(b"WORD = 1\n").hexdigest())
        self.attest("verify", "module", "--kernel", kernel, "--rerun", "100", code=0)
        with open(self.path("later_imported.py"), "a", encoding="utf-8") as file:
            file.write("WORD = 2\n")
        said = shared.words(self.attest("verify", "module", "--kernel", kernel, "--rerun", "100", code=3).stdout)
        self.assertIn("files not those that were judged: later_imported", said)


if __name__ == "__main__":
    shared.ATTEST = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
