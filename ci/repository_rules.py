"""The rules that the repository holds, each a function from a Tree to the faults it finds. repository_test.py runs them,
and plants a breach of each in a tree of its own.

A file or function over its budget is listed with its size and the reason, and may only shrink: an entry that is stale or
generous is a fault too.
"""
import ast
import os
import re
import subprocess

from cpp_reading import bare_decimals, blocks, code_of, name_of
from repository_documents import documents, quotations
from repository_names import namespaces, private_functions, type_names

CPP = (".cpp", ".hpp", ".h", ".c", ".cu", ".cuh")
TOP = {"properties", "kernels", "reference", "fixtures", "ci", "CMakeLists.txt", "CMakePresets.json", "README.md", "CHANGELOG.md",
       "LICENSE"}

# folder prefix -> prefixes of ours it may include; the longest matching prefix decides.
LAYERS = {
    # The ABI's header is C and stands on nothing; the table of fields fills its struct.
    "reference/problem/": ["reference/problem/", "kernels/interface/attest_kernel.h"],
    "reference/bound/": ["reference/problem/", "reference/bound/"],
    "reference/oracle/": ["reference/problem/", "reference/bound/", "reference/oracle/"],
    "reference/oracle/device/": ["reference/bound/", "reference/oracle/", "kernels/simt/"],
    "kernels/interface/": ["reference/problem/", "kernels/interface/"],
    "kernels/simt/": ["kernels/interface/attest_kernel.h", "kernels/simt/"],
    "kernels/cuda/": ["kernels/interface/", "kernels/simt/", "kernels/cuda/"],
    "kernels/worker/": ["reference/problem/", "kernels/interface/", "kernels/worker/"],
    "kernels/cpu/": ["reference/problem/", "kernels/interface/", "kernels/cpu/"],
    "kernels/mutants/": ["reference/problem/", "kernels/interface/", "kernels/cpu/", "kernels/cuda/", "kernels/mutants/"],
    "kernels/examples/": ["kernels/interface/attest_kernel.h", "kernels/simt/attest_call.hpp", "kernels/examples/"],
    "kernels/adapters/": ["kernels/interface/attest_kernel.h"],
    "properties/": ["reference/problem/", "reference/bound/", "properties/law/"],
    "properties/law/": ["reference/problem/", "reference/bound/", "properties/law/"],
    "properties/search/": ["reference/", "kernels/interface/", "kernels/worker/", "properties/law/", "properties/search/"],
    "properties/diagnosis/": ["reference/", "kernels/interface/", "kernels/worker/", "properties/law/",
                              "properties/search/", "properties/diagnosis/"],
    "fixtures/": ["reference/problem/", "fixtures/"],
    "ci/": ["reference/", "kernels/", "properties/", "fixtures/", "ci/"],
}
# A test may also use what it compares against; never what would make the layers a circle.
TEST_EXTRA = {
    "fixtures/": ["fixtures/", "properties/", "kernels/interface/"],
    "reference/bound/": ["reference/oracle/"],
    "reference/oracle/device/": ["reference/problem/"],
    "kernels/worker/": ["kernels/"],
    "kernels/cuda/": ["reference/problem/"],
    "properties/": ["reference/", "kernels/", "properties/"],
    "properties/law/": ["reference/", "properties/search/"],
    "properties/diagnosis/": ["kernels/"],
    "properties/search/": ["kernels/"],
}
LIBRARIES = {  # outside library -> where its headers may be named
    "gtest/": r"_test\.cpp$|^ci/",
    "gmock/": r"_test\.cpp$",
    "rapidcheck": r"^properties/search/|_test\.(cpp|hpp)$|^reference/problem/.*generators\.hpp$",
    "hwy/": r"^kernels/cpu/|^reference/(oracle|bound|problem)/|^kernels/mutants/",
    "boost/multiprecision": r"^reference/oracle/|_test\.cpp$",
    "CLI/": r"^ci/",
}

BUDGET = {".hpp": 150, ".h": 210, ".cpp": 300, ".c": 300, ".cu": 300, ".cuh": 300, ".py": 300}
LINE = 100
FUNCTION = 70
OVER = {  # file: (lines it may have, why it is one idea all the same)
    "properties/masking.cpp": (301, "ten laws of one family"),
    "properties/search/shrinker_test.cpp": (320, "one table of planted predicates, each with its one smallest case"),
}
OVER_FUNCTION = {  # (file, function): (lines it may have, why)
    ("kernels/cuda/flash_mma.cuh", "flash_mma_kernel"): (93, "a kernel reads in the order it runs"),
    ("kernels/cuda/flash.cuh", "flash_kernel"): (84, "a kernel reads in the order it runs"),
    ("kernels/cpu/test_call.cpp", "run"): (74, "one call laid out by hand, field by field"),
    ("reference/problem/validity_test.cpp", "TEST(Validity, each_contradiction_blames_its_field)"):
        (93, "a table, a row a contradiction"),
}
BARE = {  # file: (lines with a decimal that no comment tells, why)
    "properties/search/raw_draw.cpp": (1, "told with the sizes that a draw leans on"),
}
UNUSED = {  # symbol: why it stays
    "HWY_BEFORE_NAMESPACE": "Highway's, around what is compiled for one instruction set",
    "HWY_AFTER_NAMESPACE": "the same",
    "exp_in_place": "the tests' way to the vectorised exponential",
    "ErrorDirection": "names the columns of BudgetElement::direction, which is indexed by number",
    "parse_problem": "the tests' way to a problem from its line",
    "handle_types": "cuda.h's layout",
    "handle_data": "cuda.h's layout",
}
PUBLIC = ("kernels/simt/", "kernels/interface/attest_kernel.h")  # used by kernels that lie elsewhere
THESE = ("ci/repository_rules.py", "ci/repository_test.py")  # they name what they forbid
HELPERS = ("ci/golden.", "ci/schema_check.", "ci/attest_tests.", "ci/judged.", "kernels/cpu/test_call.")  # of tests

BANNED = [
    (r"\bTODO\b|\bFIXME\b|\bXXX\b", "unfinished work belongs in an issue"),
    (r"/work/|/root/|/home/[a-z]", "an absolute path of one machine"),
    (r"std::format\b|std::expected\b|std::source_location\b", "not in the oldest compiler supported"),
    (r"\busing namespace std;", "names come with their namespace"),
    (r"ffast-math", "the proofs assume IEEE arithmetic"),
]


class Tree:
    """The files of a folder that git tracks, or would."""

    def __init__(self, root):
        self.root = root
        out = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=root,
                             check=True, capture_output=True, text=True).stdout
        self.files = sorted(f for f in out.splitlines() if os.path.isfile(os.path.join(root, f)))
        self.texts = {}

    def text(self, name):
        if name not in self.texts:
            with open(os.path.join(self.root, name), encoding="utf-8", errors="replace") as handle:
                self.texts[name] = handle.read()
        return self.texts[name]

    def lines(self, name):
        return enumerate(self.text(name).splitlines(), 1)

    def sources(self, *endings):
        return [f for f in self.files if f.endswith(endings or CPP)]


def is_test(name):
    return "_test." in name or name.startswith(HELPERS)


def layer(name):
    return max((prefix for prefix in LAYERS if name.startswith(prefix)), key=len, default=None)


def top_level(tree):
    """The top level is the five rooms."""
    return [f"{name}: the top level is the five rooms" for name in sorted({f.split("/")[0] for f in tree.files} - TOP)
            if not name.startswith(".")]


def layers(tree):
    """A folder includes what its layer may; outside libraries are named where they belong."""
    faults = []
    for name in tree.sources():
        mine = layer(name)
        if mine is None:
            continue
        allowed = LAYERS[mine] + (TEST_EXTRA.get(mine, []) if "_test." in name else [])
        for number, line in tree.lines(name):
            found = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
            if not found:
                continue
            target = found.group(1)
            if re.match(r"(reference|kernels|properties|fixtures|ci)/", target):
                if not any(target.startswith(p) for p in allowed):
                    faults.append(f"{name}:{number}: {mine} may not include {target}")
            for library, where in LIBRARIES.items():
                if target.startswith(library) and not re.search(where, name):
                    faults.append(f"{name}:{number}: {library} is not for this folder")
    return faults


def over(what, size, budget, granted, slack):
    """The fault of something of a size against its budget and what an exception grants it."""
    if granted is None:
        return [f"{what}: {size} lines, the budget is {budget}"] if size > budget else []
    if size > granted:
        return [f"{what}: {size} lines, {granted} were granted"]
    return [f"{what}: {size} lines; lower its exception of {granted}"] if size < granted - slack else []


def sizes(tree, exceptions=OVER):
    """A file has one idea."""
    faults = [f"{name}: an exception for a file that is not there" for name in exceptions if name not in tree.files]
    for name in tree.files:
        budget = BUDGET.get(".cpp" if name.endswith("_test.hpp") else os.path.splitext(name)[1])
        if budget is not None:
            granted = exceptions.get(name, (None,))[0]
            faults += over(name, tree.text(name).count("\n"), budget, granted, 40)
    return faults


def functions(tree):
    """(file, name, lines) of every function; not of one that returns a table written out and does nothing else."""
    for name in tree.sources():
        code = code_of(tree.text(name))
        lines = code.splitlines()
        for head, first, last in blocks(code):
            if last is None:
                continue
            body = "\n".join(lines[first - 1:last])[len(head.strip()):].strip(" \n{}")
            if not body.startswith("return {"):
                yield name, name_of(head), last - first + 1
    for name in tree.sources(".py"):
        for node in ast.walk(ast.parse(tree.text(name))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield name, node.name, node.end_lineno - node.lineno + 1


def function_lengths(tree, exceptions=OVER_FUNCTION):
    """A function has one idea, too."""
    faults, met = [], set()
    for name, function, lines in functions(tree):
        granted = exceptions.get((name, function), (None,))[0]
        met.add((name, function))
        if granted is None or lines > FUNCTION:  # an overload that is short needs no grant
            faults += over(f"{name}: {function}", lines, FUNCTION, granted, 10)
    longest = {key: max(n for f, g, n in functions(tree) if (f, g) == key) for key in met & set(exceptions)}
    return faults + [f"{key[0]}: {key[1]} needs no exception" for key in exceptions if longest.get(key, 0) <= FUNCTION]


def line_width(tree):
    """A line fits a window."""
    return [f"{name}:{number}: {len(line)} columns, the budget is {LINE}"
            for name in tree.sources() for number, line in tree.lines(name) if len(line) > LINE]


def words(tree):
    """What no file says."""
    return [f"{name}:{number}: {why}: {line.strip()[:60]}"
            for name in tree.sources(*CPP, ".py", ".md", ".txt", ".json", ".cmake") if name not in THESE
            for number, line in tree.lines(name) for pattern, why in BANNED if re.search(pattern, line)]


def bare_tolerances(tree, exceptions=BARE):
    """A decimal in reference/ or properties/ is a tolerance that somebody derived."""
    faults = []
    for name in tree.sources(".cpp", ".hpp", ".cu", ".cuh"):
        if re.match(r"(reference|properties)/", name) and not is_test(name):
            bare = list(bare_decimals(tree.text(name)))
            granted = exceptions.get(name, (0,))[0]
            if len(bare) > granted:
                faults += [f"{name}:{line}: say where it comes from: {code}" for line, code in bare]
            elif len(bare) < granted:
                faults.append(f"{name}: {len(bare)} bare decimals; lower its exception of {granted}")
    return faults + [f"{name}: an exception for a file that is not there" for name in exceptions if name not in tree.files]


def unused_symbols(tree, exceptions=UNUSED):
    """What a header declares, something that is no test uses."""
    used, declared, where = {}, {}, {}
    for name in tree.files:
        if is_test(name) or name in THESE or not name.endswith(CPP + (".in", ".py", ".txt", ".cmake")):
            continue
        is_code = name.endswith(CPP)
        for word in re.findall(r"\w+", code_of(tree.text(name), literals=True) if is_code else tree.text(name)):
            used[word] = used.get(word, 0) + 1
        for head, line, _ in blocks(code_of(tree.text(name))) if is_code else []:
            symbol = name_of(head)
            if symbol and symbol.isidentifier():
                declared[symbol] = declared.get(symbol, 0) + 1
                if name.endswith((".hpp", ".h", ".cuh")) and not name.startswith(PUBLIC):
                    where.setdefault(symbol, f"{name}:{line}")
    dead = {symbol for symbol in where if used[symbol] <= declared[symbol]}
    return [f"{where[symbol]}: nothing uses {symbol}" for symbol in sorted(dead - set(exceptions))] + [
        f"{symbol} needs no exception: it is used, or gone" for symbol in sorted(set(exceptions) - dead)]


def ids_without_hyphen(tree):
    """GoogleTest's filter reads a hyphen as exclusion."""
    return [f"{name}:{number}: GoogleTest's filter reads a hyphen as exclusion"
            for name in tree.sources(".cpp") if re.match(r"(properties|kernels)/", name)
            for number, line in tree.lines(name) if re.search(r'\.id\s*=\s*"[^"]*-[^"]*"', line)]


def decided_by_words(tree):
    """Sentences are for people: what is decided, is decided by a word (an enum, a field of a law)."""
    part = r"\b(reason|says|sentence|what\(\))(\.text)?\)*"
    compared = re.compile(part + r'\.(starts_with|ends_with|r?find|contains|compare)\("|' + part + r' *[!=]= *"'
                          r'|\("(reason|says|problem)"\) *[!=]= *"')
    law_files = re.search(r"set\(law_files ([^)]*)\)", tree.text("properties/CMakeLists.txt")).group(1).split()
    law = re.compile(r'(?<!stream_of\()"(' + "|".join(law_files) + r')\.[a-z_]+"')
    own = re.compile(r"properties/[a-z_]+\.cpp$|kernels/mutants/|kernels/cuda/planted_bugs\.hpp$")
    faults = []
    for name in tree.sources(".cpp", ".hpp", ".cu", ".cuh"):
        for number, line in tree.lines(name) if not is_test(name) else []:
            if compared.search(line):
                faults.append(f"{name}:{number}: compares a sentence: {line.strip()}")
            if law.search(line) and not own.match(name):
                faults.append(f"{name}:{number}: names a law: {line.strip()}")
    return faults


def silent_rooms(tree):
    """What is found in reference/ and properties/ is returned, whatever the environment says."""
    speaks = re.compile(r"\b(f?printf|getenv)\(|std::(cout|cerr)\b")
    return [f"{name}:{number}: prints, or reads the environment: {line.strip()}"
            for name in tree.sources(".cpp", ".hpp", ".cu", ".cuh")
            if re.match(r"(reference|properties)/", name) and not is_test(name)
            for number, line in tree.lines(name) if speaks.search(line)]


RULES = (top_level, layers, sizes, function_lengths, line_width, words, bare_tolerances, unused_symbols,
         ids_without_hyphen, decided_by_words, silent_rooms, documents, quotations, namespaces,
         type_names, private_functions)
