"""What a kernel is made of beyond its module: the interpreter, what it imported, each with a SHA-256."""

import hashlib
import importlib.metadata
import os
import platform
import sys
import sysconfig


def sources():
    """Name to SHA-256: of a distribution its RECORD (or METADATA, where it was installed without one), of modules
    that belong to none their texts, of the interpreter its file."""
    found = {f"Python {platform.python_version()}": _digest(_content(os.path.realpath(sys.executable)))}
    owners = importlib.metadata.packages_distributions()
    strangers = {}
    for name, module in sorted(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not file or _of_python(file):
            continue
        top = name.partition(".")[0]
        if top in owners and _installed(file):
            for distribution in map(importlib.metadata.distribution, owners[top]):
                found.update(_record(distribution))
        elif top not in ("__main__", "attest_worker"):
            strangers.setdefault(top, []).append((name, _digest(_content(file))))
    for top, modules in strangers.items():
        count = f" ({len(modules)} modules)" if len(modules) > 1 else ""
        found[top + count] = modules[0][1] if not count else _digest(repr(modules).encode())
    return found


def _record(distribution):
    for name in ("RECORD", "METADATA", "PKG-INFO"):
        text = distribution.read_text(name)
        if text:
            return {f"{distribution.metadata['Name']} {distribution.version} {name}": _digest(text.encode())}
    return {}


def _installed(file):
    return "site-packages" in file or "dist-packages" in file


def _of_python(file):
    standard = sysconfig.get_path("stdlib")
    return file.startswith(standard + os.sep) and not _installed(file)


def _content(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _digest(data):
    return hashlib.sha256(data).hexdigest()
