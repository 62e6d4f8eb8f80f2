"""CUDA's text as tokens, each with its line."""
import re

TOKEN = re.compile(r"""
    (?P<space>\s+)
  | (?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)
  | (?P<raw>(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)")
  | (?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*")
  | (?P<number>\.?\d(?:'?[\w.]|(?<=[eEpP])[+-])*)
  | (?P<character>(?:u8|[uUL])?'(?:\\.|[^'\\\n])+')
  | (?P<word>[A-Za-z_]\w*)
  | (?P<launch><<<|>>>)
  | (?P<other>::|->|.)
""", re.S | re.X)

OPENING, CLOSING = "([{", ")]}"


class Refusal(Exception):
    """A line, a sentence about it, and the file, where it is not the source itself."""

    file = None


class Token:
    __slots__ = ("kind", "text", "line", "directive")

    def __init__(self, kind, text, line, directive):
        self.kind, self.text, self.line, self.directive = kind, text, line, directive


def tokens_of(text):
    """Every token with its line; directive is true inside a preprocessor line."""
    tokens, line, at_line_start, directive = [], 1, True, False
    for match in TOKEN.finditer(text):
        kind, piece = match.lastgroup, match.group()
        if kind == "mark":
            kind = "raw"
        if kind == "other" and piece == "#" and at_line_start:
            directive = True
        tokens.append(Token(kind, piece, line, directive))
        if kind == "space" and "\n" in piece and not (tokens[-2:-1] and tokens[-2].text == "\\"):
            directive, at_line_start = False, True
        elif kind not in ("space", "comment"):
            at_line_start = False
        line += piece.count("\n")
    return tokens


def refuse(token, sentence):
    raise Refusal(token.line, sentence)


def solid(tokens, i, step=1):
    """The next token that is neither space nor comment, from i on; len(tokens) or -1 past the end."""
    while 0 <= i < len(tokens) and tokens[i].kind in ("space", "comment"):
        i += step
    return i


def text_of(tokens):
    return "".join(t.text for t in tokens)


def bare_text(tokens):
    """Without comments, on one line."""
    return " ".join("".join(" " if t.kind in ("space", "comment") else t.text for t in tokens).split())


def matching(tokens, i):
    """The index of the bracket that closes the one at i."""
    depth = 0
    for j in range(i, len(tokens)):
        if tokens[j].kind == "other" and tokens[j].text in OPENING:
            depth += 1
        elif tokens[j].kind == "other" and tokens[j].text in CLOSING:
            depth -= 1
            if depth == 0:
                return j
    return refuse(tokens[i], f"this {tokens[i].text} is never closed")


def split_at_commas(tokens):
    parts, depth = [[]], 0
    for t in tokens:
        if t.kind == "other" and t.text in OPENING + "<":
            depth += 1
        elif t.kind == "other" and t.text in CLOSING + ">":
            depth -= 1
        if t.text == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(t)
    return parts
