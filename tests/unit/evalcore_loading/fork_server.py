"""A process that imported torch and Triton once and runs each test body in a fork of its own, as the worker does."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import traceback
from pathlib import Path


def main() -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
    import torch
    import triton  # noqa: F401

    torch.set_num_threads(1)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        asked = json.loads(line)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            answer(asked, writer)
        os.close(writer)
        with os.fdopen(reader) as pipe:
            told = pipe.read()
        _, status = os.waitpid(child, 0)
        answers.write(told or json.dumps({"error": f"the test body died, status {status}"}))
        answers.write("\n")
        answers.flush()


def answer(asked: dict, writer: int) -> None:
    try:
        sys.path.insert(0, str(Path(__file__).resolve().parent))
        spec = importlib.util.spec_from_file_location("bodies", asked["path"])
        module = importlib.util.module_from_spec(spec)
        sys.modules["bodies"] = module
        spec.loader.exec_module(module)
        result = getattr(module, asked["name"])(*asked["args"])
        told = {"result": result}
    except BaseException:
        told = {"error": traceback.format_exc()}
    with os.fdopen(writer, "w") as pipe:
        json.dump(told, pipe)
    os._exit(0)


if __name__ == "__main__":
    main()
