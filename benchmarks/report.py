"""Owns what every GPU benchmark writes beside its numbers: card, versions, git sha. Never measures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))


def environment() -> dict[str, Any]:
    """Card, driver, versions and the commit that is measured."""
    import torch
    import triton

    from evalcore.gpu.nvml import Nvml

    properties = torch.cuda.get_device_properties(0)
    card = Nvml().card_by_uuid(str(getattr(properties, "uuid", "")))
    facts = card.facts() if card is not None else None
    return {
        "card": properties.name,
        "driver": facts.driver if facts else None,
        "power_limit_w": facts.power_limit_w if facts else None,
        "max_sm_clock_mhz": facts.max_sm_clock_mhz if facts else None,
        "l2_bytes": properties.L2_cache_size,
        "sm_count": properties.multi_processor_count,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "triton": triton.__version__,
        "python": sys.version.split()[0],
        "git_sha": os.environ.get("ODYSSEY_GIT_SHA") or _git("rev-parse", "HEAD"),
        "git_dirty": bool(_git("status", "--porcelain", "--untracked-files=no")),
        "measured_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }


def _git(*words: str) -> str | None:
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def write(path: str, result: dict[str, Any]) -> None:
    """The result with its environment, as JSON."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"written to {target}")
