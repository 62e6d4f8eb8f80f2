#!/usr/bin/env python3
"""package_test.py BUILD: attest installed elsewhere, and a stranger's CUDA kernel built against it and judged by it."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = None

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(stranger LANGUAGES CXX)
find_package(attest REQUIRED)
attest_add_simt_kernel(mine SOURCES attention_tiled.cu attention_tiled_glue.cpp TRANSLATE)
"""


class Package(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def run_in(self, *command, code=0):
        environment = {k: v for k, v in os.environ.items() if k != "ATTEST_WORKER_DIR"}
        environment.update(COLUMNS="200", NO_COLOR="1", LC_ALL="C")
        run = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=500, check=False,
                             env=environment)
        self.assertEqual(run.returncode, code, f"{command}\n{run.stdout}{run.stderr}")
        return run.stdout + run.stderr

    def test_a_stranger_needs_the_package_alone(self):
        self.run_in("cmake", "--install", BUILD, "--prefix", "installed")
        attest = os.path.join(self.folder, "installed", "bin", "attest")
        self.assertIn("simt_flash_mma:checked", self.run_in(attest, "list", "kernels"))
        self.run_in(attest, "check", "simt_flash_mma:checked", "--cases", "2", "--match", "reference.output")
        for name in ("attention_tiled.cu", "attention_tiled_glue.cpp"):
            shutil.copy(os.path.join(ROOT, "kernels", "examples", name), self.folder)
        with open(os.path.join(self.folder, "CMakeLists.txt"), "w", encoding="utf-8") as file:
            file.write(PROJECT)
        self.run_in("cmake", "-G", "Ninja", "-S", ".", "-B", "built", "-DCMAKE_PREFIX_PATH=" + os.path.join(self.folder, "installed"))
        self.run_in("cmake", "--build", "built")
        for library in ("mine.so", "mine_checked.so"):
            said = self.run_in(attest, "check", os.path.join("built", library), "--cases", "8", "--seed", "7")
            self.assertIn("HOLDS", said)

    def test_the_packages_hold_what_a_stranger_needs(self):
        if not (shutil.which("dpkg-shlibdeps") and shutil.which("file")):
            self.skipTest("no dpkg-dev and file here, which say what a package depends on")
        self.run_in("cpack", "-G", "TGZ;DEB", "--config", os.path.join(BUILD, "CPackConfig.cmake"), "-B", "packages")
        names = os.listdir(os.path.join(self.folder, "packages"))
        package, archive = (next(n for n in names if n.endswith(end)) for end in (".deb", ".tar.gz"))
        self.assertRegex(self.run_in("dpkg-deb", "-f", os.path.join("packages", package), "Depends"), r"libfmt\d.*libsodium")
        self.run_in("dpkg-deb", "-x", os.path.join("packages", package), "root")
        self.run_in("tar", "-C", "packages", "-xf", os.path.join("packages", archive))
        for prefix in ("root/usr", "packages/" + archive.removesuffix(".tar.gz")):
            attest = os.path.join(self.folder, prefix, "bin", "attest")
            for name in ("share/man/man1/attest.1", "share/bash-completion/completions/attest"):
                self.assertTrue(os.path.exists(os.path.join(self.folder, prefix, name)), name)
            self.run_in("cc", "-std=c99", "-O2", "-shared", "-fPIC", "-I", os.path.join(prefix, "include"), "-o", "mine.so",
                        *(os.path.join(prefix, "share", "attest", "examples", n) for n in ("attention.c", "attention_glue.c")), "-lm")
            self.assertIn("HOLDS", self.run_in(attest, "check", "./mine.so", "--seed", "1", "--cases", "4"))

    def test_new_kernels_hold(self):
        self.run_in("cmake", "--install", BUILD, "--prefix", "installed")
        attest = os.path.join(self.folder, "installed", "bin", "attest")
        for kind in ("c", "cpp", "python"):
            said = self.run_in(attest, "new", kind, kind + "_one")
            lines = [line.split() for line in said.partition("next:\n")[2].splitlines()]
            for build in lines[:-1]:
                self.run_in(*build)
            self.assertIn("HOLDS", self.run_in(attest, *lines[-1][1:], "--seed", "3", "--cases", "6"))
        with open(os.path.join(self.folder, "c_one.c"), "a", encoding="utf-8") as file:
            file.write("\n")
        for words, complaint in ((("c", "c_one"), "is there already"), (("fortran", "mine"), "no kind of kernel"),
                                 (("c", "My-Kernel"), "small letters"), ((), "what kind")):
            self.assertIn(complaint, self.run_in(attest, "new", *words, code=2))

    def test_a_new_cuda_kernel_is_simulated(self):
        self.run_in("cmake", "--install", BUILD, "--prefix", "installed")
        attest = os.path.join(self.folder, "installed", "bin", "attest")
        self.run_in(attest, "new", "cuda", "mine")
        self.run_in("cmake", "-B", "build", "-DCMAKE_PREFIX_PATH=" + os.path.join(self.folder, "installed"))
        self.run_in("cmake", "--build", "build")
        self.assertIn("HOLDS", self.run_in(attest, "check", "./build/mine_checked.so", "--cases", "4", "--seed", "7"))

    def test_the_first_example_is_judged_as_the_readme_says(self):
        self.run_in("cmake", "--install", BUILD, "--prefix", "installed")
        examples = os.path.join("installed", "share", "attest", "examples")
        for name in ("attention.cpp", "attention_tiled.cu", "attention_tiled_glue.cpp", "dense_attention.py"):
            self.assertTrue(os.path.exists(os.path.join(self.folder, examples, name)), name)
        for name in ("attention.c", "attention_glue.c"):
            shutil.copy(os.path.join(self.folder, examples, name), self.folder)
        compiler = ("cc", "-O2", "-shared", "-fPIC", "-I", os.path.join("installed", "include"), "-o", "mine.so")
        attest = os.path.join(self.folder, "installed", "bin", "attest")
        check = (attest, "check", "./mine.so", "--seed", "1", "--cases", "20")
        self.run_in(*compiler, "attention.c", "attention_glue.c", "-lm")
        self.assertIn("HOLDS", self.run_in(*check))
        # The tensors themselves lie between guard pages: a read one row too far ends there.
        with open(os.path.join(self.folder, "attention.c"), encoding="utf-8") as file:
            source = file.read()
        wrong = source.replace("keys = causal ? i + 1 : T", "keys = causal ? i + 2 : T")
        self.assertNotEqual(wrong, source)
        with open(os.path.join(self.folder, "attention.c"), "w", encoding="utf-8") as file:
            file.write(wrong)
        self.run_in(*compiler, "attention.c", "attention_glue.c", "-lm")
        self.assertRegex(self.run_in(*check, code=1), "crashed: read [0-9]+ bytes past the end of [kv]")

    def test_a_machine_with_a_gpu_needs_one_folder(self):
        pack = os.path.join(ROOT, "ci", "gpu_pack")
        self.assertIn("build where nvcc is found", self.run_in(pack, self.folder, "packed", code=3))
        if not os.path.exists(os.path.join(BUILD, "kernels", "worker", "attest_cuda.so")):
            self.skipTest("built without CUDA")
        self.run_in(pack, BUILD, "packed")
        programs = os.path.join(self.folder, "packed", "libexec", "attest")
        for library in ("libcudart", "libfmt", "libboost_context", "libhwy"):
            self.assertTrue([name for name in os.listdir(programs) if name.startswith(library)], library)
        for program in (os.path.join(self.folder, "packed", "bin", "attest"), os.path.join(programs, "attest_worker"),
                        os.path.join(programs, "attest_cuda.so"), os.path.join(programs, "attest_simt.so")):
            for line in self.run_in("ldd", program).splitlines():
                if "libfmt" in line or "libcudart" in line or "libboost" in line:
                    self.assertIn(os.path.realpath(programs), os.path.realpath(line.split()[2]))
        if shutil.which("nvidia-smi") is None:
            self.assertIn("no GPU: nvidia-smi is not on the PATH", self.run_in("packed/ci/gpu", code=3))

    def test_ptx_is_refused_with_its_line(self):
        source = os.path.join(self.folder, "ptx.cu")
        with open(source, "w", encoding="utf-8") as file:
            file.write('__global__ void k(int* o) {\n    asm("mov.u32 %0, %%laneid;" : "=r"(*o));\n}\n')
        said = self.run_in(sys.executable, os.path.join(ROOT, "kernels", "simt", "translate.py"), source, "out.cpp", code=1)
        self.assertIn(f"{source}:2: error: inline PTX", said)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "out.cpp")))


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=1)
