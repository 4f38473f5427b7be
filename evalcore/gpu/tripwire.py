"""Owns noticing that a candidate calls the reference while it runs. Never stops the call, never judges it.

The text of a shared file, or an import, may put the reference within a candidate's reach. Inheriting its constructor is
honest; letting it compute is not. So its forward (or the function itself) is wrapped, in place, wherever it is found.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from evalcore.problem import Problem, ProgramKind


class Tripwire:
    """Armed before each run, since a candidate may import the reference only while it runs."""

    def __init__(self, problem: Problem, candidate: ModuleType, known: Mapping[int, Any] | None = None) -> None:
        """`known` are modules, by id, that were loaded before this process knew of any problem: they are not looked at
        again. Two thousand of them cost 45 ms a run."""
        reference = problem.reference
        own = reference.path == problem.candidate.path and reference.entry == problem.candidate.entry
        self._entry = "" if own or reference.kind is ProgramKind.EXPRESSION else reference.entry
        self._path = os.path.realpath(reference.path)
        self._shared = reference.path == problem.candidate.path
        self._candidate = candidate
        self._wrapped: set[int] = set()
        self._known = known or {}
        self.called = False
        """True once the reference was called in this process."""

    def arm(self) -> None:
        """Wrap the reference wherever it has turned up by now."""
        if not self._entry or "." in self._entry:
            return
        holders = [self._candidate] if self._shared else []
        for module in list(sys.modules.values()):
            if id(module) in self._known:
                continue
            path = getattr(module, "__file__", None)
            if isinstance(path, str) and os.path.realpath(path) == self._path and module is not self._candidate:
                holders.append(module)
        for holder in holders:
            self._wrap(holder)

    def _wrap(self, holder: ModuleType) -> None:
        found = vars(holder).get(self._entry)
        if found is None or id(found) in self._wrapped:
            return
        self._wrapped.add(id(found))
        if isinstance(found, type):
            method = "forward" if "forward" in vars(found) else "__call__"
            if method in vars(found):
                setattr(found, method, self._recording(vars(found)[method]))
        elif callable(found):
            recording = self._recording(found)
            self._wrapped.add(id(recording))
            for module in {holder, self._candidate}:
                for name, value in list(vars(module).items()):
                    if value is found:
                        setattr(module, name, recording)

    def _recording(self, original: Any) -> Any:
        @functools.wraps(original)
        def recording(*args: Any, **kwargs: Any) -> Any:
            self.called = True
            return original(*args, **kwargs)

        return recording
