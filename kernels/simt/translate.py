#!/usr/bin/env python3
"""translate.py SOURCE.cu OUTPUT.cpp: a CUDA source as C++ for the SIMT runtime.

Two things of CUDA are not C++ and are rewritten, each in its place, so that every line keeps its number:

    __shared__ T name[2][3];                    a reference to this block's array of that name
    extern __shared__ T name[];                 a pointer to the block's dynamic shared memory
    kernel<<<grid, block, bytes, stream>>>(a)   ::simt::launcher(grid, block, bytes, stream)(kernel, a)

Headers beside the source that need it are translated too (included.py). It is strict. What it does not understand, and what the runtime cannot run, is an error with file and line: inline
PTX, either of the above inside a macro, shared memory outside a function. Nothing is guessed.
"""
import os
import sys

from cuda_tokens import (CLOSING, OPENING, Refusal, bare_text, matching, refuse, solid, split_at_commas, text_of,
                         tokens_of)
from included import Headers

PTX = {"asm", "__asm__", "__asm"}
NOT_SIMULATED = {"__cluster_dims__": "thread block clusters", "__grid_constant__": "grid constants",
                 "texture": "texture references", "cudaLaunchCooperativeKernel": "cooperative launches",
                 "__nanosleep": "spinning threads"}
ALIGNMENT = {"__align__", "alignas"}


def inside_function(tokens, i):
    """Whether the innermost braces around token i are a function's, not a namespace's or a class's."""
    depth = 0
    for j in range(i - 1, -1, -1):
        text = tokens[j].text if tokens[j].kind == "other" else ""
        if text == "}":
            depth += 1
        elif text == "{" and depth > 0:
            depth -= 1
        elif text == "{":
            before = solid(tokens, j - 1, -1)
            while before >= 0 and tokens[before].text in ("const", "noexcept", "mutable"):
                before = solid(tokens, before - 1, -1)
            if before >= 0 and tokens[before].text in (")", "else", "do", "{", "}", ";", ":"):
                return True
            return False
    return False


def without_alignment(tokens):
    """Drops __align__(n) and alignas(n): arrays of the runtime lie on 128 bytes."""
    out, i = [], 0
    while i < len(tokens):
        if tokens[i].text in ALIGNMENT:
            i = matching(tokens, solid(tokens, i + 1)) + 1
            continue
        out.append(tokens[i])
        i += 1
    return out


def declarator(tokens, keyword):
    """(tokens before the name, name, dimensions) of `T name[2][3]`."""
    if any(t.text == "=" for t in tokens):
        refuse(keyword, "shared memory has no initialiser")
    dims_at = next((n for n, t in enumerate(tokens) if t.text == "["), len(tokens))
    name_at = solid(tokens, dims_at - 1, -1)
    if name_at < 0 or tokens[name_at].kind != "word":
        refuse(keyword, "this declaration of shared memory is not understood: write `__shared__ T name[n];`")
    return tokens[:name_at], tokens[name_at].text, bare_text(tokens[dims_at:])


def shared_declaration(tokens, i):
    """The declaration whose __shared__ is token i: (first token, token behind it, text)."""
    keyword = tokens[i]
    first, external = i, False
    before = solid(tokens, i - 1, -1)
    while before >= 0 and tokens[before].text in ("extern", "static"):
        external = external or tokens[before].text == "extern"
        first, before = before, solid(tokens, before - 1, -1)
    if before >= 0 and tokens[before].text not in (";", "{", "}", ")", ":", "else"):
        refuse(keyword, "write __shared__ first, before the type")
    if not inside_function(tokens, i):
        refuse(keyword, "shared memory declared outside a function: move it into the kernel that uses it")
    end = next((j for j in range(i, len(tokens)) if tokens[j].text == ";"), None)
    if end is None:
        refuse(keyword, "this declaration is never ended")
    inner = without_alignment(tokens[i + 1:end])
    words = [t for t in inner if t.text != "extern"]
    external = external or len(words) != len(inner)
    parts = split_at_commas(words)
    type_tokens, _, _ = declarator(parts[0], keyword)
    kind = bare_text(type_tokens)
    if not kind:
        refuse(keyword, "this declaration of shared memory names no type")
    out = []
    for n, part in enumerate(parts):
        own, name, dims = declarator(part, keyword)
        if n > 0 and bare_text(own):
            refuse(keyword, "one declaration, one type: write a declaration for each")
        out.append(dynamic_array(kind, name, dims, keyword) if external else static_array(kind, name, dims, keyword))
    lines = text_of(tokens[first:end + 1]).count("\n")
    return first, end + 1, " ".join(out) + "\n" * lines


def dynamic_array(kind, name, dims, keyword):
    if dims.replace(" ", "") != "[]":
        refuse(keyword, "extern shared memory has no size of its own: `extern __shared__ T name[];`")
    return f'{kind}* {name} = ::simt::dynamic_shared<{kind}>("{name}");'


def static_array(kind, name, dims, keyword):
    if "[]" in dims.replace(" ", ""):
        refuse(keyword, "an array of no size is dynamic shared memory: write extern before it")
    return (f"using {name}_simt_type = {kind} {dims}; static const char {name}_simt_key = 0; "
            f"{name}_simt_type& {name} = *static_cast<{name}_simt_type*>(::simt::current_block()->"
            f'shared_array(&{name}_simt_key, sizeof({name}_simt_type), "{name}"));')


def kernel_before(tokens, i):
    """The first token of the kernel's name, template arguments included, that ends before token i."""
    j = solid(tokens, i - 1, -1)
    if j >= 0 and tokens[j].text in (">", ">>>"):
        depth = 0
        while j >= 0 and tokens[j].text not in (";", "{", "}"):
            depth += {">": 1, ">>>": 3, "<": -1}.get(tokens[j].text, 0)
            if depth == 0:
                break
            j -= 1
        j = solid(tokens, j - 1, -1)
    if j < 0 or tokens[j].kind != "word":
        refuse(tokens[i], "a launch needs a kernel's name before <<<")
    while True:
        colons = solid(tokens, j - 1, -1)
        if colons < 0 or tokens[colons].text != "::":
            return j
        scope = solid(tokens, colons - 1, -1)
        j = scope if scope >= 0 and tokens[scope].kind == "word" else colons


def template_end(tokens, i):
    """The > of the template arguments that the < at i opens, where what follows can only follow such."""
    depth = 0
    for j in range(i, len(tokens)):
        text = tokens[j].text
        if text in ("<", ">"):
            depth += 1 if text == "<" else -1
        elif tokens[j].kind == "launch" or text in (";", "{", "}", "&", "|", "=", "?"):
            return None
        if depth == 0:
            follows = solid(tokens, j + 1)
            return j if follows < len(tokens) and tokens[follows].text in ("::", "(", "{") else None
    return None


def launch(tokens, i):
    """The launch whose <<< is token i: (first token, token behind it, text)."""
    first = kernel_before(tokens, i)
    depth, close, skip_to = 0, None, i
    for j in range(i + 1, len(tokens)):
        if j < skip_to:
            continue
        text = tokens[j].text if tokens[j].kind in ("other", "launch") else ""
        if text in tuple(OPENING):
            depth += 1
        elif text in tuple(CLOSING):
            depth -= 1
        elif text == ">>>" and depth == 0:
            close = j
            break
        elif text == "<" and depth == 0 and template_end(tokens, j) is not None:
            skip_to = template_end(tokens, j)
        elif text == ">" and j == skip_to:
            continue
        elif text in ("<", ">", "<<<", ";") and depth == 0:
            refuse(tokens[i], "this launch configuration is not understood: put its parts into variables")
    if close is None:
        refuse(tokens[i], "this <<< has no >>>")
    configuration = tokens[i + 1:close]
    if not 2 <= len(split_at_commas(configuration)) <= 4:
        refuse(tokens[i], "a launch has a grid, a block and at most two more: <<<grid, block, bytes, stream>>>")
    opening = solid(tokens, close + 1)
    if opening >= len(tokens) or tokens[opening].text != "(":
        refuse(tokens[i], "a launch ends in its arguments: >>>(...)")
    empty = tokens[solid(tokens, opening + 1)].text == ")"
    kernel = bare_text(tokens[first:i])
    lost = text_of(tokens[first:i]).count("\n") + text_of(tokens[close:opening]).count("\n")
    text = f"::simt::launcher({text_of(configuration)})({kernel}{'' if empty else ', '}" + "\n" * lost
    return first, opening + 1, text


def translate(text):
    """The C++ text; raises Refusal(line, sentence)."""
    tokens = tokens_of(text)
    rewrites = []
    for i, t in enumerate(tokens):
        if t.kind not in ("word", "launch"):
            continue
        if t.text in PTX:
            refuse(t, "inline PTX cannot run on a CPU: put it behind #if defined(__CUDA_ARCH__), in a header that is "
                      "not translated, with plain C++ in the #else")
        if t.text in NOT_SIMULATED:
            refuse(t, f"{NOT_SIMULATED[t.text]} are not simulated")
        if t.text not in ("__shared__", "<<<"):
            continue
        if t.directive:
            refuse(t, f"{t.text} inside a preprocessor line: write it out where it is used")
        if t.text == "__shared__":
            rewrites.append(shared_declaration(tokens, i))
        else:
            rewrites.append(launch(tokens, i))
    out, at = [], 0
    for first, end, replacement in rewrites:
        if first < at:
            refuse(tokens[first], "a launch inside a launch")
        out += [text_of(tokens[at:first]), replacement]
        at = end
    return "".join(out) + text_of(tokens[at:])


def main(source, output):
    headers = Headers(translate, os.path.dirname(os.path.abspath(output)))
    try:
        body = headers.read(os.path.abspath(source))
    except Refusal as refusal:
        line, sentence = refusal.args
        sys.exit(f"{refusal.file or source}:{line}: error: {sentence}")
    name = os.path.abspath(source).replace("\\", "\\\\").replace('"', '\\"')
    with open(output, "w", encoding="utf-8") as file:
        file.write(f'#include "kernels/simt/simt.hpp"\n#line 1 "{name}"\n{body}')
    with open(output + ".d", "w", encoding="utf-8") as file:
        file.write(" ".join(path.replace(" ", "\\ ") for path in [output + ":", source, *headers.files]) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("translate.py SOURCE.cu OUTPUT.cpp")
    main(sys.argv[1], sys.argv[2])
