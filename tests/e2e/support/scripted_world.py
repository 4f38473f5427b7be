"""Owns the invented measurements of the scripted server: rows, map, plots. For tests of the editor only.

Nothing here was measured. The numbers exist so that the panel has a hundred thousand rows to sort, and so that a
proposal can be accepted on a machine without a GPU. The steps of the suite that say "real" use the real server.
"""

from __future__ import annotations

import hashlib
import random
from datetime import datetime, timedelta, timezone
from typing import Any

CARD = "Scripted Card"
WORDS = {"correct": "right 5/5", "incorrect": "wrong 2/5", "compile_error": "does not compile", "error": "not judged"}
KERNELS = ("softmax_kernel", "layer_norm_kernel", "matmul_kernel")
START = datetime(2026, 1, 5, 9, 0, tzinfo=timezone.utc)


def sha_of(text: str) -> str:
    """sha256 of a text, as the ledger keys it."""
    return hashlib.sha256(text.encode()).hexdigest()


class World:
    """All rows, and the texts by sha."""

    def __init__(self, uri: str, path: str, seed_rows: int) -> None:
        self.uri = uri
        self.path = path
        self.rows: list[dict[str, Any]] = []
        self.texts: dict[str, str] = {}
        self.pinned: int | None = None
        rng = random.Random(7)
        for number in range(seed_rows):
            verdict = rng.choices(("correct", "incorrect", "compile_error", "error"), (78, 12, 7, 3))[0]
            kernel = KERNELS[0] if rng.random() < 0.7 else rng.choice(KERNELS[1:])
            text = f"# recorded text {number}\nBLOCK = {rng.choice((64, 128, 256, 512))}\n"
            self.append(
                verdict,
                text,
                kernel=kernel,
                device_us=round(20 + 80 * rng.random(), 2),
                at=START + timedelta(seconds=41 * number),
            )
            row = self.rows[-1]
            if rng.random() < 0.05:
                row["buried"] = rng.choice(("slower than its parent", "wrong tail", "spills registers"))
            row["foreign"] = rng.random() < 0.02
            if row["foreign"]:
                row["card"] = "Another Card"

    def append(
        self,
        verdict: str,
        text: str,
        *,
        kernel: str = KERNELS[0],
        device_us: float = 41.5,
        cause: str = "save",
        author: str = "person",
        at: datetime | None = None,
        parent: str | None = None,
    ) -> dict[str, Any]:
        """Add one row and its text; returns the row."""
        timed = verdict == "correct"
        sha = sha_of(text)
        self.texts[sha] = text
        seq = len(self.rows) + 1
        moment = at or datetime.now(timezone.utc)
        same = [row for row in self.rows[-40:] if row["kernel"] == kernel]
        parents = [parent] if parent else [same[-1]["sha"]] if same else []
        speedup = round(96.0 / device_us, 2) if timed else None
        row = {
            "seq": seq,
            "at": moment.isoformat(timespec="milliseconds"),
            "at_words": moment.strftime("%d %b %H:%M:%S"),
            "file": self.path,
            "uri": self.uri,
            "kernel": kernel,
            "verdict": verdict,
            "verdict_words": WORDS[verdict],
            "reason": None if verdict != "error" else "timeout",
            "speedup": speedup,
            "speedup_words": f"{speedup:.2f}x" if speedup else "",
            "opponent": "torch eager" if timed else None,
            "device_us": device_us if timed else None,
            "device_words": f"{device_us:.1f} us" if timed else "",
            "interval_words": f"{device_us - 0.4:.1f} to {device_us + 0.4:.1f} us" if timed else "",
            "regime": "memory-bound" if timed else None,
            "card": CARD,
            "foreign": False,
            "cause": cause,
            "author": author,
            "sha": sha,
            "sha_short": sha[:7],
            "parents": parents,
            "mode": "fast",
            "buried": None,
            "detail_markdown": "",
        }
        time_words = row["device_words"] or "absent"
        row["detail_markdown"] = (
            f"### {kernel}: {WORDS[verdict]}\n\n"
            f"| case | error | time |\n| --- | --- | --- |\n| `4096 x 1024` | 2.1e-7 | {time_words} |\n\n"
            f"Card **{CARD}**, scripted. <img src=x onerror=alert(1)> [no link](command:evil) Text `{sha[:7]}`."
        )
        self.rows.append(row)
        return row

    def select(self, params: dict[str, Any]) -> dict[str, Any]:
        """The answer to odyssey/ledgerRows: newest first, at most `limit`, between `after` and `before`."""
        rows = (
            [
                row
                for row in self.rows[::-1]
                if (not params.get("kernel") or row["kernel"] == params["kernel"])
                and (not params.get("uri") or row["uri"] == params["uri"])
            ]
            if params.get("kernel") or params.get("uri")
            else self.rows[::-1]
        )
        total = len(rows)
        after, before = params.get("after") or 0, params.get("before") or len(self.rows) + 1
        chosen = [row for row in rows if after < row["seq"] < before][: params.get("limit") or 200]
        return {
            "rows": chosen,
            "last_seq": len(self.rows),
            "total": total,
            "places": {"ledger": ".odyssey/ledger.db (scripted)"},
        }

    def map(self, params: dict[str, Any]) -> dict[str, Any]:
        """The answer to odyssey/map: the newest 400 distinct texts of the scope in three lanes."""
        rows = list({row["sha"]: row for row in reversed(self.select({**params, "limit": 400})["rows"])}.values())
        timed = [row for row in rows if row["device_us"] and not row["foreign"]]
        best = min(timed, key=lambda row: row["device_us"])["sha"] if timed else None
        known = {row["sha"] for row in rows}
        nodes = [
            {
                "sha": row["sha"],
                "seq": row["seq"],
                "lane": lane_of(row),
                "row": number,
                "parents": row["parents"],
                "author": row["author"],
                "verdict": row["verdict"],
                "label": " · ".join(
                    part for part in (row["verdict_words"], row["speedup_words"], row["device_words"]) if part
                ),
                "hover_markdown": row["detail_markdown"],
                "buried": row["buried"],
                "best": row["sha"] == best,
                "at_words": row["at_words"],
            }
            for number, row in enumerate(rows)
        ]
        edges = [{"from": p, "to": n["sha"], "kind": "edit"} for n in nodes for p in n["parents"] if p in known]
        return {"nodes": nodes, "edges": edges}

    def plots(self, params: dict[str, Any]) -> dict[str, Any]:
        """The answer to odyssey/plots."""
        rows = [row for row in reversed(self.select({**params, "limit": 120})["rows"]) if row["device_us"]]
        roofline = {
            "card": f"{CARD} (scripted)",
            "axes": {"x_label": "FLOP per byte (counted)", "y_label": "GFLOP/s"},
            "ceilings": [
                {"label": "copy, measured 4.1 TB/s", "points": [[0.1, 410], [12, 49200]]},
                {"label": "fp32, measured 49 TFLOP/s", "points": [[12, 49200], [1000, 49200]]},
            ],
            "points": [
                {
                    "seq": r["seq"],
                    "x": 0.6 + (r["seq"] % 7) / 9,
                    "y": 60000 / r["device_us"],
                    "label": f"{r['kernel']} {r['device_words']}",
                    "verdict": r["verdict"],
                }
                for r in rows
            ],
        }
        history = [
            {
                "seq": r["seq"],
                "at": r["at"],
                "y": r["speedup"],
                "label": f"{r['speedup_words']} {r['at_words']}",
                "verdict": r["verdict"],
            }
            for r in rows
        ]
        return {
            "roofline": roofline if rows else None,
            "history": {"points": history, "y_label": "speedup against torch eager"},
            "note": "Scripted numbers, for tests of the editor.",
        }


def lane_of(row: dict[str, Any]) -> int:
    """Lane 0 for a person's line, 1 for dead branches, 2 for the tuner."""
    return 1 if row["buried"] else 2 if row["author"] == "tuner" else 0
