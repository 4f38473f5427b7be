"""Owns cutting a text into top-level pieces, and keeping the cut up to date under edits. Never parses.

A piece is parsed alone: an edit costs one small parse, and a half-typed definition spoils its own piece and no other
(one unclosed bracket would otherwise make an error of the whole file).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator

Scanner = Callable[[bytes, int], Iterator[int]]
"""(data, start of a piece) -> starts of the pieces after it. Its state at a piece's start depends on nothing before."""

_PLAIN_BYTES = 2000
"""Plain statements are cut only so often: a parse a line would cost more than the lines."""
_PY_TOKEN = re.compile(
    rb"#[^\n\r]*"
    rb'|(?P<triple>"""|\'\'\')'
    rb'|"(?:\\.|[^"\\\n\r])*"?'
    rb"|'(?:\\.|[^'\\\n\r])*'?"
    rb"|(?P<line>(?:\r\n|\n|\r)(?=[^\s#)\]}]))",
    re.S,
)
_PY_CONTINUES = re.compile(rb"(?:else|elif|except|finally)\b")
_PY_DEFINES = re.compile(rb"(?:def|class|async)\b")
_PY_RECOVERS = re.compile(rb"^(?:@\w|def \w|class \w[^\n]*:|import \w|from \w[^\n]* import |if __name__)", re.M)


def python_pieces(data: bytes, start: int) -> Iterator[int]:
    """Starts of top-level pieces: definitions with their decorators, and runs of plain statements between them.

    A piece begins at a line in column 0 outside strings.
    """
    begin = start
    position = start + 3 if start == 0 and data.startswith(b"\xef\xbb\xbf") else start
    decorated = data[position : position + 1] == b"@"
    defining = decorated or bool(_PY_DEFINES.match(data, position))
    while match := _PY_TOKEN.search(data, position):
        position = match.end()
        if match["triple"]:
            _content, position, terminated = triple_end(data, position, match["triple"])
            if terminated or position >= len(data):
                continue
        elif match["line"] is None or _PY_CONTINUES.match(data, position):
            continue
        elif decorated and (data[position : position + 1] == b"@" or _PY_DEFINES.match(data, position)):
            decorated = data[position : position + 1] == b"@"
            continue
        starts = data[position : position + 1] == b"@" or bool(_PY_DEFINES.match(data, position))
        if starts or defining or position - begin > _PLAIN_BYTES:
            begin, defining, decorated = position, starts, data[position : position + 1] == b"@"
            yield position


def triple_end(data: bytes, start: int, quote: bytes) -> tuple[int, int, bool]:
    """(end of content, end of literal, terminated) of a triple-quoted string whose content starts at `start`.

    One that is never closed ends where Python seems to go on, so that what follows is still seen.
    """
    position = start
    while (found := data.find(quote, position)) >= 0:
        slashes = 0
        while found - slashes > start and data[found - slashes - 1] == 0x5C:
            slashes += 1
        if slashes % 2 == 0:
            return found, found + 3, True
        position = found + 1
    recovers = _PY_RECOVERS.search(data, start)
    end = recovers.start() if recovers else len(data)
    return end, end, False


_FAR = re.compile(rb'"""|\'\'\'|/\*|\*/')
"""What an edit may bring or take that changes where text far away belongs."""

_CU_TOKEN = re.compile(
    rb"//[^\n\r]*"
    rb"|/\*.*?(?:\*/|\Z)"
    rb'|R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)"'
    rb'|"(?:\\.|[^"\\\n\r])*"?'
    rb"|(?<![\w'])'(?:\\.|[^'\\\n\r])*'?"
    rb"|(?P<space>\b(?:namespace\b[^;{}()=]*|extern\s*\"C\"\s*)\{)"
    rb"|(?P<brace>[{}])"
    rb"|(?P<line>(?:\r\n|\n|\r)(?=[^\s}]))"
    rb"|(?P<directive>^[ \t]*\#(?:\\\r?\n|[^\n\r])*)",
    re.S | re.M,
)
_CU_STARTS = re.compile(rb"(?:__global__|template\b|__device__|extern\b|namespace\b|using\b|typedef\b)")


def cuda_pieces(data: bytes, start: int) -> Iterator[int]:
    """Starts of top-level declarations: lines in column 0 outside braces. A namespace's braces do not count."""
    depth = 0
    position = start
    while match := _CU_TOKEN.search(data, position):
        position = max(match.end(), match.start() + 1)
        if match["brace"] == b"{":
            depth += 1
        elif match["brace"] == b"}":
            depth = max(depth - 1, 0)
        elif match["line"] is not None:
            whole = depth == 0 and _is_whole(data, match.start())
            if whole or (depth > 0 and _CU_STARTS.match(data, position)):
                depth = 0
                yield position


def _is_whole(data: bytes, end: int) -> bool:
    """Whether what stands before `end` is a finished declaration, a directive, a label or a comment."""
    line_start = max(data.rfind(b"\n", 0, end), data.rfind(b"\r", 0, end)) + 1
    line = data[line_start:end].strip()
    if not line or line.startswith((b"#", b"//")) or line.endswith(b"*/"):
        return line_start == 0 or not line or _is_whole(data, max(line_start - 1, 0)) or line.startswith(b"#")
    code = line.split(b"//")[0].rstrip()
    return code.endswith((b";", b"}", b"{", b":"))


class Pieces:
    """A text as bytes and the starts of its pieces."""

    def __init__(self, data: bytes, scanner: Scanner) -> None:
        self.data = data
        self._scanner = scanner
        self.starts: list[int] = [0, *scanner(data, 0)]

    def edit(self, start: int, old_end: int, new: bytes) -> None:
        """Replace bytes start..old_end; only pieces near the edit are cut anew."""
        start = min(max(start, 0), len(self.data))
        old_end = min(max(old_end, start), len(self.data))
        delta = len(new) - (old_end - start)
        far = bool(_FAR.search(self.data[max(start - 2, 0) : old_end + 2]))
        self.data = self.data[:start] + new + self.data[old_end:]
        if far or _FAR.search(self.data[max(start - 2, 0) : start + len(new) + 2]):
            self.starts = [0, *self._scanner(self.data, 0)]
            return
        first = max(bisect_right(self.starts, start) - 2, 0)
        head = self.starts[: first + 1]
        tail = bisect_right(self.starts, old_end)
        later = self.starts[tail:]
        known = {each + delta: index for index, each in enumerate(later)}
        new_end = start + len(new)
        for boundary in self._scanner(self.data, head[-1]):
            index = known.get(boundary) if boundary > new_end else None
            if index is not None:
                head += [each + delta for each in later[index:]]
                break
            head.append(boundary)
        self.starts = head

    def spans(self) -> Iterator[tuple[int, int]]:
        """(start, end) of each piece in order."""
        starts = self.starts
        for index, start in enumerate(starts):
            yield start, starts[index + 1] if index + 1 < len(starts) else len(self.data)
