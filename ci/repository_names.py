"""The rules of names: a namespace a room, and no type name twice, so that whoever searches for a name finds one thing."""
import re

from cpp_reading import code_of

# folder prefix -> the namespace of its files, or of what lies within; the longest matching prefix decides.
NAMESPACES = {
    "reference/problem/": "attest",  # what every room speaks
    "reference/bound/": "attest::bound",
    "reference/oracle/": "attest::oracle",
    "kernels/interface/": "attest::kernel",
    "kernels/worker/": "attest::worker",
    "kernels/cpu/": "attest::cpu",
    "kernels/cuda/": "attest::cuda",
    "kernels/mutants/": "attest::museum",
    "kernels/simt/": "simt",  # a stranger's kernel speaks it, too
    "properties/": "attest::law",
    "properties/search/": "attest::search",
    "properties/diagnosis/": "attest::diagnosis",
    "fixtures/": "attest::fixtures",
    "ci/": "attest::ci",
}
ELSEWHERE = {  # file: the namespaces it may have besides its own
    "kernels/interface/builtin.hpp": ("attest::cpu", "attest::cuda", "attest::museum"),  # each room's list of kernels
    "kernels/worker/builtin_registry.cpp": ("attest::kernel",),  # all of them
    "kernels/simt/cooperative_groups.hpp": ("cooperative_groups",),  # CUDA's name
}
TWO_WORLDS = ("SharedCarver",)  # written once for nvcc and once for any other compiler

TYPE = re.compile(r"^(?:template <[^\n]*>\s+)?(?:struct|class|enum class|enum|union)\s+(?:alignas\([^)]*\) )?(\w+)"
                  r"(?: final)?(?:\s*:(?!:)[^;{]*)?\s*\{", re.M)
ALIAS = re.compile(r"^(?:template <[^\n]*>\s+)?using (\w+) =", re.M)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def namespaces(tree):
    """A file's names lie in its room's namespace."""
    faults = []
    for name in tree.sources(".cpp", ".hpp", ".cu", ".cuh"):
        room = NAMESPACES.get(max((p for p in NAMESPACES if name.startswith(p)), key=len, default=None))
        code = code_of(tree.text(name))
        for found in re.finditer(r"^namespace ([\w:]+) \{", code, re.M):
            used = found.group(1)
            if f"namespace {room} {{" in code[:found.start()] and "::" not in used:
                used = f"{room}::{used}"  # one within the room's
            inside = used.startswith(f"{room}::") and used not in NAMESPACES.values()
            if room and used != room and not inside and used not in ELSEWHERE.get(name, ()):
                faults.append(f"{name}:{line_of(code, found.start())}: namespace {used}; the room's is {room}")
    return faults


def type_names(tree):
    """No type name twice. A short name that a .cpp gives a type for itself may stand in several."""
    where = {}
    for name in tree.sources(".cpp", ".hpp", ".cu", ".cuh"):
        code = code_of(tree.text(name))
        for pattern in (TYPE, ALIAS):
            for found in pattern.finditer(code):
                own = pattern is ALIAS and name.endswith((".cpp", ".cu"))
                where.setdefault(found.group(1), []).append((own, f"{name}:{line_of(code, found.start())}"))
    faults = []
    for name, places in sorted(where.items()):
        if len(places) > 1 and not all(own for own, _ in places) and name not in TWO_WORLDS:
            faults.append(f"{name} is a type in " + " and in ".join(place for _, place in places))
    return faults


FUNCTION = re.compile(r"^(?:inline |constexpr |static )*[\w:][\w:<>,&* ]*[ &*](\w+)\(([^;{}()]*(?:\([^()]*\)[^;{}()]*)*)\)(?: const| noexcept)* \{", re.M)


def private_functions(tree):
    """A function that a file keeps for itself stands in one file of a room: a first build joins several files in a unit."""
    where = {}
    for name in tree.sources(".cpp"):
        if name.endswith("_test.cpp"):
            continue
        code = code_of(tree.text(name))
        for part in re.finditer(r"^namespace \{$.*?^\}$", code, re.M | re.S):
            for found in FUNCTION.finditer(part.group()):
                types = [re.sub(r"\s+", " ", one).strip().rpartition(" ")[0] for one in found.group(2).split(",")]
                room = name.rpartition("/")[0]
                where.setdefault((room, found.group(1), tuple(types)), []).append(
                    f"{name}:{line_of(code, part.start() + found.start())}")
    return [f"{key[1]}() stands in " + " and in ".join(places) for key, places in sorted(where.items()) if len(places) > 1]
