"""Owns asking a child of the person's interpreter how a problem's inputs look, case by case. Never imports torch."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from evalcore.jobs import Refusal
from evalcore.problem import Case, Problem, TensorSpec
from evalcore.wire import WireError, decode, encode
from server.host import Host

TIMEOUT_S = 300.0
MOST_ANSWER_BYTES = 64 << 20


async def looks(
    host: Host, python: str, problem: Problem, cases: Sequence[Case]
) -> dict[str, tuple[TensorSpec, ...]] | Refusal:
    """Case name -> specs of its inputs. A case whose inputs cannot be made is left out."""
    request = json.dumps({"problem": encode(problem), "cases": encode(list(cases))}).encode()
    environ = {**host.environ, "TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
    environ.pop("PYTHONPATH", None)
    argv = [python, str(host.package_root / "evalcore" / "_entry"), "--role", "specs"]
    process = await asyncio.create_subprocess_exec(
        *argv, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env=environ, limit=MOST_ANSWER_BYTES,
    )  # fmt: skip
    try:
        out, err = await asyncio.wait_for(process.communicate(request), TIMEOUT_S)
    except asyncio.TimeoutError:
        return _refusal(f"The inputs were not made within {TIMEOUT_S:g} s")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    found: dict[str, tuple[TensorSpec, ...]] = {}
    for line in out.decode("utf-8", "replace").splitlines():
        answer: dict[str, Any] = json.loads(line)
        try:
            found[answer["case"]] = decode(tuple[TensorSpec, ...], answer["specs"])  # type: ignore[arg-type]
        except (KeyError, WireError):
            continue
    if not found:
        return _refusal(f"The inputs could not be made: {err.decode('utf-8', 'replace')[-500:] or out.decode()[-500:]}")
    return found


def _refusal(message: str) -> Refusal:
    return Refusal(code="no_inputs", message=message, remedy="Run odyssey eval on the file: it names the cause.")
