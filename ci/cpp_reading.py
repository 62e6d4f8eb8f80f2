"""What the rules of the repository need to know of C++ and CUDA as clang-format writes them: where comments and literals
are, what is declared, where a function ends, which numbers nobody explains. No compiler."""
import fractions
import re


def code_of(text, literals=False):
    """The text with comments blanked, and the insides of literals; every line stays where it is."""
    blank = lambda found: re.sub(r"[^\n]", " ", found.group(0))
    keep = lambda found: found.group(0) if literals else '"' + re.sub(r"[^\n]", " ", found.group(0)[1:-1]) + '"'
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'', re.S)
    return pattern.sub(lambda f: blank(f) if f.group(0).startswith(("//", "/*")) else keep(f), text)


def flat(head):
    """A declaration without what stands in its parentheses and template parameters."""
    head = re.sub(r"\btemplate\s*<[^<>]*(?:<[^<>]*>[^<>]*)*>", " ", head)
    while re.search(r"\([^()]+\)", head):
        head = re.sub(r"\(([^()]*)\)", lambda f: "()" if f.group(1) else "\0", head)
        head = head.replace("\0", "()").replace("(())", "()")
        head = re.sub(r"\((?:[^()]|\(\))+\)", "()", head)
    return " ".join(head.split())


NO_NAME = {"__attribute__", "__launch_bounds__", "alignas", "decltype", "noexcept", "requires", "explicit"}


def name_of(head):
    """What a declaration declares, if it has a name: a test is named with its suite."""
    macro = re.match(r"\s*(TEST\w*|RC_GTEST\w*|TYPED_TEST)\s*\(([^)]*)\)?", head)
    if macro:
        return f"{macro.group(1)}({' '.join(macro.group(2).split())})"
    line = flat(head)
    kind = re.search(r"\b(?:class|struct|union|concept)\s+(?:alignas\(\) )?(\w+)[^()]*$", line)
    if kind and "=" not in line[:kind.start()]:
        return kind.group(1)
    before = re.split(r"(?<![=!<>])=(?!=)", line)[0]
    called = [n for n in re.findall(r"(operator\W+|~?\w+)\s*\(\)", before) if n not in NO_NAME]
    if called:
        return called[0].strip()
    last = re.search(r"(\w+)\s*(?:\[[^\]]*\]\s*)*$", before)
    return last.group(1) if last else None


def blocks(code):
    """(head, first line, last line) of every function of a namespace or a class, and (head, line, None) of what else is
    declared there."""
    code = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda f: re.sub(r"[^\n]", " ", f.group(0)), code, flags=re.M)
    found, scopes, begin, body = [], [], 0, None
    line = lambda at: code.count("\n", 0, at) + 1
    for token in re.finditer(r"[{};]", code):
        mark, at = token.group(0), token.start()
        begin += re.match(r"(?:\s*(?:public|private|protected):)*", code[begin:at]).end()
        head = code[begin:at]
        first = line(begin + len(head) - len(head.lstrip()))
        if mark == "}":
            kind = scopes.pop() if scopes else "scope"
            if kind == "function":
                found.append((*body, line(at)))
            if kind != "data" and "body" not in scopes:
                begin = at + 1
        elif scopes and scopes[-1] in ("function", "data", "inner"):
            if mark == "{":
                scopes.append("inner")
        elif mark == ";":
            found.append((head, first, None))
            begin = at + 1
        else:
            line_of_head = flat(head)
            assigned = re.search(r"(?<![=!<>])=(?!=)", line_of_head) and "operator" not in line_of_head
            lambda_ = re.search(r"\](?: ?\(\))?(?: ?(?:mutable|noexcept|-> ?[\w:<>&* ]+))*$", line_of_head)
            if re.match(r"(?:inline )?namespace\b|extern \"", line_of_head) or (
                    "()" not in line_of_head.replace("alignas()", "") and not assigned
                    and re.search(r"\b(?:class|struct|union)\b", line_of_head)):
                scopes.append("scope")
                found.append((head, first, None))
                begin = at + 1
            elif lambda_ or ("()" in line_of_head and not assigned and code[at - 1].isspace()):
                scopes.append("function")
                body = (head, first)
            else:
                scopes.append("data")
    return found


def bare_decimals(text):
    """(line, code) of every decimal whose origin no comment tells: on a line of its statement, in the block right above
    it, or by its digits in the block right above the function. What binary holds exactly (0.5) is no tolerance, nor is
    a value of seven digits or more (log 2), nor the size of a planted deviation."""
    raw, code = text.splitlines(), code_of(text).splitlines()
    proofs = [""] * len(code)
    for _, first, last in blocks(code_of(text)):
        if last is not None:
            above = first - 1
            while above > 0 and raw[above - 1].lstrip().startswith("//"):
                above -= 1
            proofs[first - 1:last] = ["\n".join(raw[above:first - 1])] * (last - first + 1)
    for at, line in enumerate(re.sub(r"planted::\w+\([^()]*\)", "", part) for part in code):
        numbers = re.findall(r"(?<![\w.])(?:\d+\.\d*|\d+(?=[eE]-))(?:[eE][-+]?\d+)?", line.replace("'", ""))
        numbers = [n for n in numbers if not re.search(rf"(?<![\w.]){re.escape(n)}(?!\w|\.\d)", proofs[at])]
        if all(len(re.sub(r"\D|[eE].*", "", n).strip("0")) >= 7
               or (lambda below: below & (below - 1) == 0)(fractions.Fraction(n).denominator) for n in numbers):
            continue
        start = at
        while start > 0 and code[start - 1].strip() and not re.search(
                r"[;}]$|^[^=]*\{$|\b(case\b.*|default|public|private|protected):$", code[start - 1].rstrip()):
            start -= 1
        if not any("//" in near for near in raw[start:at + 1]) and not (start and raw[start - 1].lstrip().startswith("//")):
            yield at + 1, line.strip()
