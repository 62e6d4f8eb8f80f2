#!/usr/bin/env python3
"""What the translator makes of CUDA, and what it refuses, each with its line."""
import os
import shutil
import tempfile
import unittest

from cuda_tokens import Refusal
from included import SIMULATED, Headers
from translate import translate


def kernel(*lines):
    return "__global__ void k(float* o) {\n" + "\n".join(lines) + "\n}\n"


class Translates(unittest.TestCase):
    def same_lines(self, source):
        text = translate(source)
        self.assertEqual(text.count("\n"), source.count("\n"), text)
        return text

    def test_plain_cpp_is_left_alone(self):
        for source in ("int f(int a) { return a << 3 >> 1; }\n",
                       "std::vector<std::vector<std::vector<int>>> v;\n",
                       '// __shared__ float x[1]; k<<<1, 2>>>();\nconst char* s = "asm <<< __shared__";\n',
                       "/* asm(\n\"x\") */ char c = '\"'; long n = 1'000'000;\n",
                       'auto t = R"(asm k<<<1,2>>>())";\n'):
            self.assertEqual(translate(source), source)

    def test_static_shared_memory(self):
        text = self.same_lines(kernel("  __shared__ float tile[32][33];", "  tile[0][0] = 1;"))
        self.assertIn("using tile_simt_type = float [32][33];", text)
        self.assertIn('"tile"));', text)
        self.assertNotIn("__shared__", text)
        for declaration in ("static __shared__ int n;", "__shared__ __align__(16) unsigned char raw[64];",
                            "__shared__ alignas(8) std::pair<int, float> best[4];", "__shared__ volatile float s[64];",
                            "__shared__\n  float\n  tile[2]\n  ;"):
            self.assertNotIn("__shared__", self.same_lines(kernel(declaration)))

    def test_several_in_one_declaration(self):
        text = self.same_lines(kernel("  __shared__ float a[4], b[8][2], c;"))
        for name in ("a", "b", "c"):
            self.assertIn(f"{name}_simt_type& {name} = ", text)

    def test_dynamic_shared_memory(self):
        for declaration in ("extern __shared__ float s[];", "extern __shared__ __align__(16) float s[];",
                            "__shared__ extern float s[];"):
            self.assertIn('float* s = ::simt::dynamic_shared<float>("s");', self.same_lines(kernel(declaration)))

    def test_launches(self):
        for source, wanted in (
                ("k<<<1, 32>>>(o);", "::simt::launcher(1, 32)(k, o);"),
                ("k<<<1, 32>>>();", "::simt::launcher(1, 32)(k);"),
                ("k<<<grid, dim3(8, 4), bytes, stream>>>(o, 1);", "::simt::launcher(grid, dim3(8, 4), bytes, stream)(k, o, 1);"),
                ("ns::k<float, 64> <<< f(a, b), t >>> (o);", "::simt::launcher( f(a, b), t )(ns::k<float, 64>, o);"),
                ("k<<<p->grid, this->block(q->n)>>>(o);", "::simt::launcher(p->grid, this->block(q->n))(k, o);"),
                ("k<<<grid, Traits<64>::threads, s->bytes>>>(o);", "::simt::launcher(grid, Traits<64>::threads, s->bytes)(k, o);"),
                ("k<<<div_up<int>(n, 2), A<B<int>>::n>>>(o);", "::simt::launcher(div_up<int>(n, 2), A<B<int>>::n)(k, o);"),
                ("k<T, 4><<<n, dim3{1, 2}>>>(a->b);", "::simt::launcher(n, dim3{1, 2})(k<T, 4>, a->b);"),
                ("k<A<B<int>>><<<1, 2>>>(o);", "::simt::launcher(1, 2)(k<A<B<int>>>, o);")):
            self.assertIn(wanted, self.same_lines(f"void f() {{ {source} }}\n"))

    def test_a_launch_over_several_lines_keeps_them(self):
        text = self.same_lines("void f() {\n  k<64>\n    <<<grid,\n       block>>>\n    (a,\n     b);\n  g();\n}\n")
        self.assertEqual(text.split("\n")[6], "  g();")


class Includes(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.headers = Headers(translate, self.folder)

    def read(self, **files):
        for name, text in files.items():
            with open(os.path.join(self.folder, name.replace("_", ".")), "w", encoding="utf-8") as file:
                file.write(text)
        return self.headers.read(os.path.join(self.folder, "main.cu"))

    def test_one_with_shared_memory_is_translated(self):
        text = self.read(main_cu='#include <vector>\n#include "tile.cuh"\nint a;\n',
                         tile_cuh='#pragma once\n#include "plain.h"\n' + kernel("__shared__ float t[4];"),
                         plain_h="int b;\n")
        lines = text.split("\n")
        self.assertEqual((lines[0], lines[2]), ("#include <vector>", "int a;"))
        with open(lines[1].split('"')[1], encoding="utf-8") as file:
            header = file.read().split("\n")
        self.assertIn("tile.cuh", header[0])
        self.assertIn(os.path.join(self.folder, "plain.h"), header[2])
        self.assertIn("t_simt_type", header[4])
        self.assertEqual([os.path.basename(f) for f in self.headers.files], ["tile.cuh", "plain.h"])

    def test_one_deeper_too(self):
        text = self.read(main_cu='#include "outer.h"\n', outer_h='#include "inner.h"\n',
                         inner_h="void f() { k<<<1, 2>>>(); }\n")
        self.assertNotIn('"outer.h"', text)

    def test_others_are_left_where_they_are(self):
        source = '#include "plain.h"\n#include "elsewhere.h"\n#include <cuda_runtime.h>\n// #include "tile.cuh"\n'
        self.assertEqual(self.read(main_cu=source, plain_h="// __shared__\n", tile_cuh="__shared__"), source)

    def test_one_that_cannot_be_says_where_it_stands(self):
        with self.assertRaises(Refusal) as caught:
            self.read(main_cu='#include "tile.cuh"\n', tile_cuh="int a;\n#define S __shared__ float x[4];\n")
        self.assertEqual(caught.exception.args[0], 2)
        self.assertEqual(os.path.basename(caught.exception.file), "tile.cuh")

    def test_one_of_a_toolkit_is_said_to_be_missing(self):
        for line in ("#include <cooperative_groups/memcpy_async.h>", '#include "cub/cub.cuh"', "#include <cuda/barrier>"):
            with self.assertRaises(Refusal) as caught:
                self.read(main_cu="int a;\n" + line + "\n")
            self.assertEqual(caught.exception.args[0], 2)
            self.assertIn("the simulation does not have", caught.exception.args[1])

    def test_those_that_are_simulated_are_known(self):
        own = os.path.join(os.path.dirname(os.path.realpath(__file__)), "include")
        had = [os.path.relpath(os.path.join(folder, name), own) for folder, _, names in os.walk(own) for name in names]
        self.assertEqual(sorted(had), sorted(SIMULATED))


class Refuses(unittest.TestCase):
    def refused(self, source, line, *words):
        with self.assertRaises(Refusal) as caught:
            translate(source)
        self.assertEqual(caught.exception.args[0], line, caught.exception.args)
        for word in words:
            self.assertIn(word, caught.exception.args[1])

    def test_inline_ptx(self):
        for spelling in ('asm("mov.u32 %0, %%laneid;" : "=r"(x));', 'asm volatile("bar.sync 0;");', '__asm__("nop");'):
            self.refused(kernel("  int x;", "  " + spelling), 3, "inline PTX")

    def test_inside_a_macro(self):
        self.refused("int a;\n#define S __shared__ float x[4];\n", 2, "preprocessor")
        self.refused("#define RUN(k) \\\n  k<<<1, 2>>>(o)\n", 2, "preprocessor")
        self.refused("#define NOP asm(\"nop\")\n", 1, "inline PTX")

    def test_shared_memory_outside_a_function(self):
        self.refused("extern __shared__ float s[];\n", 1, "outside a function")
        self.refused("namespace n {\n__shared__ float s[4];\n}\n", 2, "outside a function")
        self.refused("struct S {\n  __shared__ float s[4];\n};\n", 2, "outside a function")

    def test_declarations_it_does_not_understand(self):
        self.refused(kernel("float __shared__ x[4];"), 2, "first")
        self.refused(kernel("__shared__ float x = 0;"), 2, "initialiser")
        self.refused(kernel("__shared__ float x[];"), 2, "extern")
        self.refused(kernel("extern __shared__ float x[4];"), 2, "no size")
        self.refused(kernel("__shared__ float x[4], *y;"), 2, "one type")
        self.refused(kernel("__shared__ float (*x)[4];"), 2, "not understood")
        self.refused("void f() { __shared__ float x[4]", 1, "never ended")

    def test_launches_it_does_not_understand(self):
        self.refused("void f() {\n  k<<<1>>>(o);\n}\n", 2, "grid")
        self.refused("void f() {\n  k<<<1, 2, 3, 4, 5>>>(o);\n}\n", 2, "grid")
        self.refused("void f() {\n  k<<<a < b, 2>>>(o);\n}\n", 2, "variables")
        self.refused("void f() {\n  k<<<1, 2;\n}\n", 2)
        self.refused("void f() {\n  k<<<1, 2>>> o;\n}\n", 2, "arguments")
        self.refused("void f() {\n  (k)<<<1, 2>>>(o);\n}\n", 2, "name")

    def test_what_is_not_simulated(self):
        self.refused("__global__ void __cluster_dims__(2) k() {}\n", 1, "cluster")
        self.refused("void f() {\n cudaLaunchCooperativeKernel(a, b);\n}\n", 2, "cooperative")


if __name__ == "__main__":
    unittest.main(verbosity=1)
