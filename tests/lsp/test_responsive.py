"""The event loop is never held: the benchmark's watch around the real server, while a large file is typed into."""

from __future__ import annotations

import sys

import pytest

from benchmarks.latency import large_text, typing
from benchmarks.latency_client import Client
from tests.support.fake_python import fake_python

HELD_P99_MS = 25.0
"""Five times the bar: other suites may share the machine. The benchmark holds the bar itself on a quiet one."""

HELD_MAX_MS = 400.0
"""Whatever blocks (a child's start that is waited for, a parse, torch) takes longer than this."""


@pytest.mark.slow  # a time on a busy machine proves nothing; benchmarks/latency.py holds the bar
@pytest.mark.skipif(sys.platform != "linux", reason="the watch is read by a signal")
def test_typing_into_five_thousand_lines_never_holds_the_loop(tmp_path):
    workspace, state = tmp_path / "work", tmp_path / "state"
    workspace.mkdir()
    state.mkdir()
    client = Client(workspace, state)
    try:
        client.initialize({"python": fake_python(tmp_path), "evaluate": "save"})
        text = large_text()
        uri = client.open("large.py", text)
        client.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
        found = typing(client, uri, text, 6)
    finally:
        client.stop()
    assert found["n"] == 10
    assert found["loop"]["p99_ms"] < HELD_P99_MS, found["loop"]
    assert found["loop"]["max_ms"] < HELD_MAX_MS, found["loop"]
