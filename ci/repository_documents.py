"""The rules of documents: what a file points to is there, and what a page quotes is so."""
import os
import re

READ = (".cpp", ".hpp", ".h", ".c", ".cu", ".cuh", ".py", ".md", ".txt")


def documents(tree):
    """A document named in a file is there, beside it or from the top, and so is a section: FILE.md, "Section"."""
    faults = []
    for name in [f for f in tree.sources(*READ) if not f.startswith("ci/repository_")]:
        whole = re.sub(r"\n[ \t]*(///?|#|\*)?[ \t]*|\"\s*\"", " ", tree.text(name)).replace('\\"', '"')
        for path, section in re.findall(r'([\w./-]*\w(?<!certificate)\.md)(?:`?, "([^"]+)")?', whole):  # attest writes that
            found = [p for p in (os.path.normpath(os.path.join(name, "..", path)), path) if p in tree.files]
            if not found or section and not re.search(f"(?m)^#+ {re.escape(section)}$", tree.text(found[0])):
                faults.append(f"{name}: {path} has no section {section}" if found else f"{name}: {path} does not exist")
    return faults


def quotations(tree):
    """C++ that a page shows, for people to copy, stands in a source file beside the page."""
    faults = []
    for name in tree.sources(".md"):
        beside = [" ".join(tree.text(f).split()) for f in tree.sources(".cpp", ".hpp") if os.path.dirname(f) == os.path.dirname(name)]
        for found in re.finditer(r"(?ms)^```cpp\n(.*?)^```", tree.text(name)):
            if not any(" ".join(found.group(1).split()) in text for text in beside):
                faults.append(f"{name}:{tree.text(name).count(chr(10), 0, found.start()) + 1}: no file beside it has this code")
    return faults
