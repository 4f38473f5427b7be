"""Owns the list of the screen's rules for Python text. Never holds a rule itself: families have a file each."""

from __future__ import annotations

from evalcore.screen_judge import called_reference, hidden_code, late_work, patched, walked
from evalcore.screen_state import (
    call_counter,
    except_fallback,
    input_cache,
    lazy_tensor,
    own_streams,
    own_threads,
    precision_set,
    tf32_dot,
    torch_compile,
)
from evalcore.screen_text import Rule, Text
from evalcore.screen_world import (
    ends_process,
    environment,
    forged_print,
    native,
    reads_files,
    system,
    writes_files,
    writes_text,
)

__all__ = ["RULES", "Rule", "Text"]

RULES: tuple[Rule, ...] = (
    Rule("calls-reference", True, True, called_reference),
    Rule("patches-judge", True, True, patched),
    Rule("walks-judge", True, False, walked),
    Rule("hidden-code", True, False, hidden_code),
    Rule("late-work", True, False, late_work),
    Rule("input-cache", True, False, input_cache),
    Rule("call-counter", True, False, call_counter),
    Rule("except-fallback", True, False, except_fallback),
    Rule("lazy-tensor", True, False, lazy_tensor),
    Rule("threads", True, False, own_threads),
    Rule("streams", True, False, own_streams),
    Rule("reads-files", True, False, reads_files),
    Rule("writes-files", True, False, writes_files),
    Rule("writes-text", False, False, writes_text),
    Rule("system", True, False, system),
    Rule("native", False, False, native),
    Rule("ends-process", True, False, ends_process),
    Rule("forged-print", True, False, forged_print),
    Rule("environment", True, False, environment),
    Rule("torch-compile", False, False, torch_compile),
    Rule("tf32-dot", False, False, tf32_dot),
    Rule("sets-precision", False, False, precision_set),
)
