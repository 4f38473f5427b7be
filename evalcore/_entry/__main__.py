"""Owns the by-path start of a worker in the user's interpreter. Never imports anything before sys.path is repaired.

It stands alone in its folder: Python puts that folder on sys.path, and it is taken off again before anything else is
imported. `evalcore` is then registered by file spec, so that exactly one name of ours becomes importable. The syntax
here is that of Python 3.8, so that an interpreter that is too old gets a sentence and not a SyntaxError.
"""

from __future__ import annotations

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_PACKAGE = os.path.dirname(_HERE)
_OLDEST = (3, 10)


def _repair_path() -> None:
    sys.path[:] = [each for each in sys.path if os.path.abspath(each or os.curdir) != _HERE]


def _register() -> None:
    import importlib.util

    place = os.path.join(_PACKAGE, "__init__.py")
    spec = importlib.util.spec_from_file_location("evalcore", place, submodule_search_locations=[_PACKAGE])
    if spec is None or spec.loader is None:
        raise SystemExit("evalcore is not where its launcher stands: " + _PACKAGE)
    module = importlib.util.module_from_spec(spec)
    sys.modules["evalcore"] = module
    spec.loader.exec_module(module)


def _unfit() -> tuple[str, str, str] | None:
    """(what is missing, the sentence, what to do) where no worker can run here at all, else None."""
    if sys.version_info < _OLDEST:
        have = f"{sys.version_info[0]}.{sys.version_info[1]}"
        words = f"Python {have} at {sys.executable} is too old to judge kernels; 3.10 is the oldest that works"
        return "python", words, "choose a Python 3.10 or newer that has torch"
    if not hasattr(os, "fork"):
        return (
            "fork",
            "this system cannot fork processes, which judging kernels rests on",
            "use Linux, or WSL on Windows",
        )
    return None


def _say_unfit(what: str, words: str, remedy: str) -> int:
    import json

    have = f"{sys.version_info[0]}.{sys.version_info[1]}"
    missing = {"what": what, "message": words, "remedy": remedy}
    hello = {"frame": "hello", "protocol": 1, "python": have, "executable": sys.executable, "missing": [missing]}
    hello.update({"torch": None, "triton": None, "devices": [], "isolation": [], "fork": hasattr(os, "fork")})
    hello.update({"flavour": None, "evaluator_sha": None, "evaluator_md5": None, "scratch": None})
    os.write(1, (json.dumps(hello) + "\n").encode())
    os.write(2, (words + "\n").encode())
    return 3


def main() -> int:
    """Repair sys.path, register evalcore, hand over to the role. Returns the exit status."""
    _repair_path()
    unfit = _unfit()
    if unfit is not None:
        return _say_unfit(*unfit)
    _register()
    from evalcore.worker.start import start

    return start(sys.argv[1:], launcher=_HERE)


if __name__ == "__main__":
    raise SystemExit(main())
