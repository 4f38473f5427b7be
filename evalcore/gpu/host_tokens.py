"""Owns C++ host text as tokens: comments gone, macros expanded, functions and constants cut out. Never translates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evalcore.gpu.cuda_text import plain

_TOKEN = re.compile(
    r"""\s+|(?P<number>(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[uUlLfF]*)|"""
    r"""(?P<string>"(?:\\.|[^"\\])*")|(?P<char>'(?:\\.|[^'\\])')|(?P<name>[A-Za-z_]\w*(?:::~?[A-Za-z_]\w*)*)|"""
    r"""(?P<op><<<|>>>|<<=|>>=|->|\+\+|--|<<|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|::|[-+*/%&|^~!<>=?:;,.(){}\[\]])"""
)
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(\([^)\n]*\))?[ \t]*((?:\\\r?\n|[^\n])*)", re.MULTILINE)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\r?\n|[^\n])*", re.MULTILINE)
_COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*")', re.DOTALL)
_STRINGIFY = re.compile(r"(?<!#)#\s*(\w+)")
_MOST_EXPANSIONS = 2000


class Unsupported(Exception):
    """Host code that is left to a real compiler. The message names the construct."""


@dataclass(frozen=True, slots=True)
class Token:
    """One token. `kind` is 'number', 'string', 'char', 'name' or 'op'."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Macro:
    """A #define. `parameters` is None for an object-like one."""

    parameters: tuple[str, ...] | None
    body: tuple[Token, ...]


@dataclass(frozen=True, slots=True)
class HostFunction:
    """A host function as it is written."""

    name: str
    result: tuple[Token, ...]
    parameters: tuple[Token, ...]
    body: tuple[Token, ...]


def tokenize(text: str) -> list[Token]:
    """Tokens of a text without comments. Raises Unsupported for a character that starts none."""
    found: list[Token] = []
    index = 0
    while index < len(text):
        match = _TOKEN.match(text, index)
        if match is None:
            raise Unsupported(f"the character {text[index]!r}")
        index = match.end()
        if match.lastgroup:
            found.append(Token(match.lastgroup, match[match.lastgroup]))
    return found


def uncommented(text: str) -> str:
    """The text without comments; strings stay."""
    return _COMMENT.sub(lambda match: match[1] or " ", text)


def macros(text: str) -> dict[str, Macro]:
    """Every #define of the text that is plain enough to expand."""
    found: dict[str, Macro] = {}
    for match in _DEFINE.finditer(uncommented(text)):
        parameters = None
        if match[2] is not None:
            parameters = tuple(part.strip() for part in match[2][1:-1].split(",") if part.strip())
        try:
            body = tuple(tokenize(_STRINGIFY.sub(r'"#\1"', match[3].replace("\\\r\n", " ").replace("\\\n", " "))))
        except Unsupported:
            continue  # uses ##; an error only where the macro is used
        found[match[1]] = Macro(parameters, body)
    return found


def expand(tokens: list[Token], known: dict[str, Macro], budget: int = _MOST_EXPANSIONS) -> list[Token]:
    """Tokens with macros replaced, again and again. Raises Unsupported where that does not end."""
    result: list[Token] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        macro = known.get(token.text) if token.kind == "name" else None
        if macro is None:
            result.append(token)
            index += 1
            continue
        budget -= 1
        if budget < 0:
            raise Unsupported(f"the macro {token.text}, which never ends")
        rest = {name: one for name, one in known.items() if name != token.text}
        if macro.parameters is None:
            result += expand(list(macro.body), rest, budget)
            index += 1
        elif index + 1 < len(tokens) and tokens[index + 1].text == "(":
            close = closing(tokens, index + 1)
            arguments = split(tokens[index + 2 : close])
            result += expand(_filled(macro, arguments), rest, budget)
            index = close + 1
        else:
            result.append(token)
            index += 1
    return result


def _filled(macro: Macro, arguments: list[list[Token]]) -> list[Token]:
    parameters = macro.parameters or ()
    given = dict(zip(parameters, arguments, strict=False))
    if parameters and parameters[-1] == "...":
        given["__VA_ARGS__"] = _joined(arguments[len(parameters) - 1 :])
    body: list[Token] = []
    for token in macro.body:
        if token.kind == "string" and token.text[1:2] == "#" and token.text[2:-1] in given:
            body.append(Token("string", '"' + "".join(one.text for one in given[token.text[2:-1]]) + '"'))
            continue
        body += given.get(token.text, [token]) if token.kind == "name" else [token]
    return body


def _joined(parts: list[list[Token]]) -> list[Token]:
    joined: list[Token] = []
    for part in parts:
        joined += [Token("op", ","), *part] if joined else part
    return joined


def closing(tokens: Sequence[Token], index: int) -> int:
    """Index of the bracket that closes the one at `index`."""
    pairs = {"(": ")", "{": "}", "[": "]"}
    depth = 0
    for place in range(index, len(tokens)):
        text = tokens[place].text if tokens[place].kind == "op" else ""
        if text in pairs:
            depth += 1
        elif text in pairs.values():
            depth -= 1
            if depth == 0:
                return place
    raise Unsupported("brackets that do not close")


def split(tokens: Sequence[Token], separator: str = ",") -> list[list[Token]]:
    """Parts between separators that stand outside brackets; [] for nothing at all."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        if token.kind == "op" and token.text in "([{":
            depth += 1
        elif token.kind == "op" and token.text in ")]}":
            depth -= 1
        if depth == 0 and token.kind == "op" and token.text == separator:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts if len(parts) > 1 or parts[0] else []


def host_functions(text: str) -> list[HostFunction]:
    """The host functions that `text` defines, at namespace level, before macros are expanded."""
    bare = _DIRECTIVE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    found = []
    for header, body in _definitions(bare):
        tokens = tokenize(uncommented(header))
        opening = next((i for i, token in enumerate(tokens) if token.text == "("), None)
        if opening is None or opening == 0 or tokens[opening - 1].kind != "name":
            continue
        close = closing(tokens, opening)
        result = [token for token in tokens[: opening - 1] if token.text not in {"static", "inline", "constexpr"}]
        found.append(
            HostFunction(
                name=tokens[opening - 1].text, result=tuple(result), parameters=tuple(tokens[opening + 1 : close]),
                body=tuple(tokenize(uncommented(body))),
            )
        )
    return found


def _definitions(text: str) -> Iterator[tuple[str, str]]:
    """(header, body) of every function definition that is not for the device."""
    bare = plain(text)
    start = index = 0
    while index < len(bare):
        char = bare[index]
        if char == ";":
            start = index + 1
        elif char == "{":
            header = text[start:index]
            if re.search(r'\bnamespace\b|extern\s*"', plain(header) + header) and "(" not in header:
                start = index = index + 1
                continue
            close = _brace(bare, index)
            if "(" in header and not re.search(r"__(?:global|device)__|\btemplate\b|=\s*$", header):
                yield header, text[index + 1 : close]
            start, index = close + 1, close
        elif char == "}":
            start = index + 1
        index += 1


def _brace(text: str, index: int) -> int:
    depth = 0
    for place in range(index, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return place
    raise Unsupported("braces that do not close")


def constants(text: str) -> list[tuple[str, tuple[Token, ...]]]:
    """(name, value) of integer constants at namespace level: `constexpr int N = 4;` and the like."""
    bare = _DIRECTIVE.sub(" ", uncommented(text))
    found = []
    pattern = r"^(?:static\s+|constexpr\s+|const\s+|inline\s+)+(?:unsigned\s+)?(?:int|int64_t|size_t|float|double|auto|"
    pattern += r"unsigned|long|long long|int32_t|bool)\s+(\w+)\s*=\s*([^;{}]+);"
    for match in re.finditer(pattern, bare, re.MULTILINE):
        found.append((match[1], tuple(tokenize(match[2]))))
    return found
