"""Owns the screen of CUDA C++ text, by words with comments and strings taken out. Never parses C++."""

from __future__ import annotations

import re
from collections.abc import Iterator

_NOISE = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.S)
_SCALARS = r"(?:float|double|int|unsigned|char|half|__half|bool)"
_RULES: tuple[tuple[str, re.Pattern[str], str, bool], ...] = (
    (
        "cuda-process",
        re.compile(r"\b(system|popen|execv\w*|fork|ptrace|dlopen|dlsym|socket|connect)\s*\("),
        "calls {0}, which no kernel needs",
        True,
    ),
    (
        "cuda-ends-process",
        re.compile(r"\b(_exit|exit|abort|quick_exit|raise|kill)\s*\("),
        "ends the process ({0})",
        True,
    ),
    (
        "cuda-files",
        re.compile(r"\b(fopen|ifstream|ofstream|remove|unlink|getenv|environ)\b(?=\s*[(\w])"),
        "uses {0}",
        True,
    ),
    (
        "cuda-host-callback",
        re.compile(r"\b(cudaLaunchHostFunc|cudaStreamAddCallback)\b"),
        "runs host code later ({0})",
        True,
    ),
    (
        "cuda-graph",
        re.compile(r"\b(cudaStreamBeginCapture|cudaGraphLaunch)\b"),
        "captures a CUDA graph ({0})",
        False,
    ),
    (
        "cuda-memo",
        re.compile(r"^\s*(?:static\s+)?__device__\s+(?:volatile\s+)?" + _SCALARS + r"\b[^;({]*[;=]", re.M),
        "keeps state in a device-side global between launches",
        False,
    ),
)
_STREAM = re.compile(r"\bcudaStreamCreate\w*\b|\bgetStreamFromPool\b")
_JOIN = re.compile(r"\bcudaStreamWaitEvent\b|\bcuda(Stream|Device|Event)Synchronize\b|\.synchronize\(\)|\.block\(")


def screen_cuda(text: str) -> Iterator[tuple[str, int, int, str, bool]]:
    """(rule, line, column, message, gate) for CUDA text; lines and columns from 1."""
    plain = _NOISE.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)
    for rule, pattern, message, gate in _RULES:
        for found in pattern.finditer(plain):
            words = found.group(1) if pattern.groups else found.group()
            yield (rule, *_place(plain, found.start()), message.format(words), gate)
    for found in _STREAM.finditer(plain):
        joined = _JOIN.search(plain) is not None
        message = "works on a stream of its own" + ("" if joined else " that is never joined with the caller's")
        yield ("cuda-stream", *_place(plain, found.start()), message, not joined)


def _place(text: str, offset: int) -> tuple[int, int]:
    line = text.count("\n", 0, offset) + 1
    return line, offset - (text.rfind("\n", 0, offset) + 1) + 1
