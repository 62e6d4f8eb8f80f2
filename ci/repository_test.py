#!/usr/bin/env python3
"""The repository holds its own rules (repository_rules.py), and each rule sees a breach of it."""
import os
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import repository_rules as rules  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Repository(unittest.TestCase):
    """One test a rule, made below."""


def holds(rule):
    def test(self):
        faults = rule(rules.Tree(ROOT))
        self.assertFalse(faults, "\n" + "\n".join(faults))
    test.__doc__ = rule.__doc__
    return test


for each in rules.RULES:
    setattr(Repository, "test_" + each.__name__, holds(each))


LONG = "int long_one() {\n" + "    step();\n" * 70 + "    return 0;\n}\n"
TABLE = "Rows table() {\n    return {\n" + "        {1, 2},\n" * 80 + "    };\n}\n"


class Breach(unittest.TestCase):
    """A tree of a few files for each rule: what keeps it, and what breaks it."""

    def faults(self, rule, files, **options):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        os.makedirs(os.path.join(folder, ".git/objects"))  # all that git asks of a repository
        os.makedirs(os.path.join(folder, ".git/refs"))
        with open(os.path.join(folder, ".git/HEAD"), "w", encoding="utf-8") as handle:
            handle.write("ref: refs/heads/main\n")
        for name, text in files.items():
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as handle:
                handle.write(text)
        return rule(rules.Tree(folder), **options)

    def keeps(self, rule, files, **options):
        self.assertEqual(self.faults(rule, files, **options), [])

    def breaks(self, rule, files, *says, **options):
        faults = self.faults(rule, files, **options)
        self.assertEqual(len(faults), len(says), faults)
        for fault, part in zip(faults, says):
            self.assertIn(part, fault)

    def test_top_level(self):
        self.keeps(rules.top_level, {"README.md": "", "ci/a": "", ".gitignore": ""})
        self.breaks(rules.top_level, {"notes/a.md": ""}, "notes: ")

    def test_layers(self):
        upward = '#include "reference/oracle/oracle.hpp"\n'
        self.keeps(rules.layers, {"reference/oracle/a.cpp": upward, "reference/bound/a_test.cpp": upward})
        for name in ("kernels/cuda/flash.cuh", "kernels/cuda/a.cu", "reference/bound/a.cpp", "kernels/simt/a.h"):
            self.breaks(rules.layers, {name: "\n" + upward}, name + ":2: ")
        self.breaks(rules.layers, {"properties/a.cpp": "#include <CLI/CLI.hpp>\n"}, "CLI/ is not for")

    def test_sizes(self):
        lines = lambda count: "//\n" * count
        self.keeps(rules.sizes, {"ci/a.cpp": lines(300), "ci/a.hpp": lines(150), "ci/a_test.hpp": lines(300)}, exceptions={})
        for name, budget in (("a.hpp", 150), ("a.cpp", 300), ("a.cu", 300), ("a.cuh", 300), ("a.py", 300)):
            self.breaks(rules.sizes, {"ci/" + name: lines(budget + 1)}, f"{budget + 1} lines", exceptions={})
        granted = {"ci/a.cpp": (400, "why")}
        self.keeps(rules.sizes, {"ci/a.cpp": lines(400)}, exceptions=granted)
        self.breaks(rules.sizes, {"ci/a.cpp": lines(401)}, "400 were granted", exceptions=granted)
        self.breaks(rules.sizes, {"ci/a.cpp": lines(320)}, "lower its exception", exceptions=granted)
        self.breaks(rules.sizes, {}, "not there", exceptions=granted)

    def test_function_lengths(self):
        def keeps(text, name="ci/a.cpp", exceptions=()):
            self.keeps(rules.function_lengths, {name: text}, exceptions=dict(exceptions))

        def breaks(text, said, name="ci/a.cpp", exceptions=()):
            self.breaks(rules.function_lengths, {name: text}, said, exceptions=dict(exceptions))

        keeps(LONG.replace("    step();\n", "", 5))
        keeps(TABLE)
        keeps("namespace a {\n" + "int f() {\n    return 1;\n}\n" * 50 + "}\n")
        keeps("const Row rows[] = {\n" + "    {1, f(2)},\n" * 80 + "};\n")
        keeps('const char* text = R"({\n' + "int f() {\n" * 90 + ')";\n')
        breaks(LONG, "long_one: 73 lines")
        breaks("namespace a {\nnamespace {\n" + LONG + "}\n}\n", "long_one: 73")
        breaks("class A final : public B {\npublic:\n" + LONG + "};\n", "long_one: 73")
        breaks("extern \"C\" {\n" + LONG + "}\n", "long_one: 73")
        breaks("A::A(int x)\n    : x_{x}, y_(std::vector{1, 2}) {\n" + "    // {\n    g();\n" * 40 + "}\n", "A: ")
        breaks("TEST(Suite, name) {" + LONG[len("int long_one() {"):], "TEST(Suite, name): 73")
        breaks("const auto f = [](int x) {\n" + "    g();\n" * 70 + "};\n", "f: 72")
        breaks("template <typename T = A<int>>\nbool operator==(const T&, const T&) {\n" + "  g();\n" * 70 + "}\n", "operator==")
        breaks("__global__ void __launch_bounds__(128)\nkernel(int n) {\n" + "    if (n) { g(); }\n" * 70 + "}\n",
               "kernel: 73", "kernels/cuda/a.cuh")
        breaks("def f():\n" + "    g()\n" * 70, "f: 71 lines", "ci/a.py")
        keeps(LONG, exceptions={("ci/a.cpp", "long_one"): (73, "why")})
        breaks(LONG, "72 were granted", exceptions={("ci/a.cpp", "long_one"): (72, "why")})
        breaks(LONG, "lower its exception", exceptions={("ci/a.cpp", "long_one"): (90, "why")})
        breaks("int f();\n", "needs no exception", exceptions={("ci/a.cpp", "f"): (90, "why")})

    def test_line_width(self):
        self.keeps(rules.line_width, {"ci/a.cpp": "/" * 100 + "\n"})
        for name in ("ci/a.cpp", "kernels/cuda/a.cu", "kernels/cuda/a.cuh"):
            self.breaks(rules.line_width, {name: "\n" + "/" * 101 + "\n"}, name + ":2: 101 columns")

    def test_words(self):
        for name in ("ci/a.cpp", "kernels/cuda/a.cuh", "ci/README.md", "ci/a.py"):
            self.keeps(rules.words, {name: "to be done\n"})
            self.breaks(rules.words, {name: "TO" + "DO\n"}, name + ":1: unfinished")
        self.breaks(rules.words, {"ci/a.cpp": "// -ffast" + "-math\n"}, "IEEE")

    def test_bare_tolerances(self):
        def check(text, *lines, name="reference/bound/a.cpp", exceptions=()):
            says = [f"{name}:{line}: say where" for line in lines]
            self.breaks(rules.bare_tolerances, {name: text}, *says, exceptions=dict(exceptions))

        check("if (x > 1e-3) return;\n", 1)
        check("// Why, but of another statement.\nf();\nconst double up = 0.1 * u;\n", 3)
        check("const double most = coarse ? 1.10 : 1.30;\n", 1, name="properties/a.cpp")
        check("x = f(a,\n      0.3 * b);\n", 2)
        check("return 1.01 * x;\n", 1, name="reference/oracle/device/a.cuh")
        check("return 1.01 * x;  // 1.01: the products of errors\n")
        check("// 1.01: the products of errors.\nreturn a +\n       1.01 * x;\n")
        check("// f is 2.1 (that).\ndouble f(double x) {\n    g();\n    return 2.1 * x;\n}\n")
        check("// f is 12.1 (that).\ndouble f(double x) {\n    g();\n    return 2.1 * x;\n}\n", 4)
        check("return 0.5 * x + 2.0 + 0x1p-52 + 0.6931471805599453;\n")
        check(".turned_red_by = {planted::answers_times(1.02)},\n")
        check('throw Bad("0.1 is too much");\n')
        check("EXPECT_LT(x, 1e-3);\n", name="properties/a_test.cpp")
        check("x = 0.1;\ny = 0.3;\n", exceptions={"reference/bound/a.cpp": (2, "why")})
        check("x = 0.1;\ny = 0.3;\n", 1, 2, exceptions={"reference/bound/a.cpp": (1, "why")})
        self.breaks(rules.bare_tolerances, {"reference/a.cpp": "x = 0.1;\n"}, "lower its exception",
                    exceptions={"reference/a.cpp": (2, "why")})

    def test_unused_symbols(self):
        def check(files, *says, exceptions=()):
            self.breaks(rules.unused_symbols, files, *says, exceptions=dict(exceptions))

        header, source = "#pragma once\nint f(int x);\n", "int f(int x) {\n    return x;\n}\n"
        call = "int g() {\n    return f(1);\n}\n"
        check({"ci/a.hpp": header, "ci/a.cpp": source, "ci/b.cpp": call})
        check({"ci/a.hpp": header, "ci/a.cpp": source}, "ci/a.hpp:2: nothing uses f")
        check({"ci/a.hpp": header, "ci/a.cpp": source, "ci/a_test.cpp": call}, "nothing uses f")
        check({"ci/a.hpp": header, "ci/a.cpp": source, "ci/b.cpp": "// f is called\n"}, "nothing uses f")
        check({"ci/a.hpp": "struct Idle {\n    int width = 0;\n};\n"}, "ci/a.hpp:1: nothing uses Idle",
              "ci/a.hpp:2: nothing uses width")
        check({"ci/a.hpp": "inline constexpr double limit = 2;\n"}, "nothing uses limit")
        check({"kernels/cuda/a.cuh": "__device__ int f(int x);\n"}, "nothing uses f")
        check({"ci/a.hpp": header}, exceptions={"f": "why"})
        check({"ci/a.hpp": header, "ci/b.cpp": call}, "f needs no exception", exceptions={"f": "why"})

    def test_ids_without_hyphen(self):
        self.keeps(rules.ids_without_hyphen, {"properties/a.cpp": '    .id = "masking.causal",\n'})
        self.breaks(rules.ids_without_hyphen, {"properties/a.cpp": '    .id = "masking.cau-sal",\n'}, "hyphen")

    def test_decided_by_words(self):
        def check(name, line, *says):
            laws = {"properties/CMakeLists.txt": "set(law_files masking entropy)"}
            self.breaks(rules.decided_by_words, laws | {name: line + "\n"}, *says)

        check("ci/a.cpp", 'if (verdict.reason.starts_with("not in")) stop();', "compares a sentence")
        check("ci/a.cpp", 'if (record.at("reason") == "gone") stop();', "compares a sentence")
        check("ci/a.cpp", 'if (law == "masking.causal") stop();', "names a law")
        check("properties/masking.cpp", '.id = "masking.causal",')
        check("ci/a_test.cpp", 'if (law == "masking.causal") stop();')
        check("ci/a.cpp", "if (verdict.reason.kind == Reason::Kind::cut) stop();")

    def test_silent_rooms(self):
        for line in ('if (getenv("DEBUG")) f();', 'std::fprintf(stderr, "%d", n);', "std::cerr << n;"):
            self.breaks(rules.silent_rooms, {"properties/diagnosis/a.cpp": line + "\n"}, ":1: prints")
            self.keeps(rules.silent_rooms, {"ci/a.cpp": line + "\n", "reference/oracle/a_test.cpp": line + "\n"})
        self.keeps(rules.silent_rooms, {"reference/problem/a.cpp": 'std::snprintf(text, 9, "%d", n);\n'})

    def test_quotations(self):
        page = {"kernels/README.md": "```cpp\nint a =\n    1;\n```\n"}
        self.keeps(rules.quotations, page | {"kernels/a.cpp": "int a = 1;\n"})
        self.breaks(rules.quotations, page | {"kernels/a.cpp": "int b = 1;\n"}, "kernels/README.md:1: no file beside it")

    def test_documents(self):
        page = {"ci/README.md": "# The page\n\n## One section\n"}
        for text in ('// (README.md, "One section")\n', '// as ci/README.md, "The\n// page", says; certificate.md is written\n',
                     '.source = "Higham; ci/README.md, "\n          "\\"One section\\"",\n'):
            self.keeps(rules.documents, page | {"ci/a.cpp": text})
        self.breaks(rules.documents, page | {"ci/a.cpp": "// numbers.md B.1\n"}, "ci/a.cpp: numbers.md does not exist")
        self.breaks(rules.documents, page | {"properties/a.cpp": "// README.md\n"}, "README.md does not exist")
        self.breaks(rules.documents, page | {"ci/a.py": '# README.md, "Another"\n'}, 'no section Another')
        self.breaks(rules.documents, page | {"ci/b.md": "[x](../c/README.md)\n"}, "../c/README.md does not exist")

    def test_namespaces(self):
        def check(name, text, *says):
            self.breaks(rules.namespaces, {name: text}, *says)

        check("ci/a.cpp", "namespace attest::ci {\nnamespace {\n}\n}  // namespace attest::ci\n")
        check("ci/a.cpp", "namespace attest {\n}\n", "ci/a.cpp:1: namespace attest; the room's is attest::ci")
        check("kernels/worker/a.hpp", "\nnamespace attest::ci {\n}\n", "a.hpp:2: namespace attest::ci; the room's is attest::worker")
        check("properties/search/a.cpp", "namespace attest::law {\n}\n", "the room's is attest::search")
        check("kernels/worker/a.hpp", "namespace attest::worker::protocol {\n}\n")
        check("kernels/cpu/a.hpp", "namespace attest::cpu {\nnamespace split {\n}\n}\n")
        check("kernels/cpu/a.hpp", "namespace split {\n}\n", "namespace split; the room's is attest::cpu")
        check("reference/problem/a.hpp", "namespace attest {\n}\n")
        check("reference/problem/a.hpp", "namespace attest::law {\n}\n", "the room's is attest")
        check("kernels/cuda/a.cuh", "namespace attest::cpu {\n}\n", "the room's is attest::cuda")
        check("kernels/worker/builtin_registry.cpp", "namespace attest::kernel {\n}\n")

    def test_type_names(self):
        slot = {"kernels/worker/a.hpp": "struct Slot {\n};\n"}
        for text in ("struct Slot;\n", "// struct Slot {\n", "struct Slot::Inner {\n", "    struct Slot {\n"):
            self.keeps(rules.type_names, slot | {"ci/b.hpp": text})
        for text in ("class Slot final : public Base {\n", "enum class Slot : int { one };\n", "template <typename T>\nstruct Slot {\n",
                     "namespace {\nstruct Slot {\n", "using Slot = int;\n"):
            self.breaks(rules.type_names, slot | {"ci/b.cpp": text}, "Slot is a type in ci/b.cpp")
        self.breaks(rules.type_names, slot | {"kernels/cuda/b.cuh": "struct Slot {\n"}, "and in kernels/worker/a.hpp:1")
        self.breaks(rules.type_names, slot | {"kernels/cuda/b.cu": "enum Slot { one };\n"}, "and in kernels/worker/a.hpp:1")
        alias = "using Clock = std::chrono::steady_clock;\n"
        self.keeps(rules.type_names, {"ci/a.cpp": alias, "ci/b.cpp": alias})
        self.breaks(rules.type_names, {"ci/a.hpp": alias, "ci/b.cpp": alias}, "Clock is a type in ci/a.hpp:1 and in ci/b.cpp:1")
        self.keeps(rules.type_names, {"kernels/simt/a.hpp": "class SharedCarver {\n", "kernels/simt/b.hpp": "class SharedCarver {\n"})

    def test_private_functions(self):
        file = "namespace attest::law {\n\nnamespace {\n\nint sum_of(int a,\n           int b) {\n    return a + b;\n}\n\n}  // namespace\n\n}\n"
        own = {"properties/a.cpp": file}
        self.breaks(rules.private_functions, own | {"properties/b.cpp": file.replace("int a", "int c")}, "sum_of() stands in properties/a.cpp:5")
        for other in ({"properties/law/b.cpp": file}, {"properties/b_test.cpp": file}, {"properties/b.cpp": file.replace("int b", "long b")},
                      {"properties/b.cpp": file.replace("namespace {", "namespace own {")}):
            self.keeps(rules.private_functions, own | other)

    def test_every_rule_has_a_breach(self):
        for rule in rules.RULES:
            self.assertTrue(hasattr(self, "test_" + rule.__name__), rule.__name__)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
