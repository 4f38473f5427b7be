"""Owns the hover card: one measurement as Markdown, built from `server.words`. Never trusts a text that it shows.

Whatever a candidate or a compiler wrote is escaped or put into a code block that it cannot close.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from evalcore.facts import KernelFacts, Samples
from evalcore.jobs import CaseReport, Measurement
from server import words
from server.headline import headline
from server.sites import Bound

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|<>~])")
_MAX_CASES = 12
_MAX_ERROR_CHARS = 2000


def plain(text: str) -> str:
    """A foreign text as literal Markdown on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def block(text: str) -> str:
    """A foreign text as a code block that no run of backticks in it can end."""
    text = text[:_MAX_ERROR_CHARS] + ("\n..." if len(text) > _MAX_ERROR_CHARS else "")
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(longest + 1, 3)
    return f"{fence}text\n{text}\n{fence}"


def card(measurement: Measurement, *, seq: int, fresh: bool, old_because: str = "") -> str:
    """The whole card. `old_because` says why it is not about the text on the screen."""
    parts = [_title(measurement)]
    if not fresh:
        parts.append(f"*{plain(old_because or 'The text has changed since this was measured.')}*")
    if measurement.result.error:
        parts.append(block(measurement.result.error))
    if measurement.cases:
        parts.append(_cases_table(measurement.cases))
    parts += [_figures(measurement), _opponents(measurement), _resources(measurement.kernels), _flags(measurement)]
    parts.append(_provenance(measurement, seq))
    return "\n\n".join(part for part in parts if part)


def _title(measurement: Measurement) -> str:
    title = f"**{plain(measurement.kernel)}** · {words.verdict_words(measurement)}"
    best = words.headline_words(headline(measurement))
    if best:
        title += f" · {best}"
    if measurement.environment.interpreted:
        title += f" · {words.INTERPRETED}"
    return title


def _cases_table(cases: Sequence[CaseReport]) -> str:
    rows = ["| case | right | max abs error | tolerance | time | reference |", "|---|---|---|---|---|---|"]
    for case in cases[:_MAX_CASES]:
        name = case.name if case.origin == "given" else f"{case.name} ({case.origin})"
        right = f"{case.trials_right}/{case.trials}" if case.trials else case.status
        error = "" if case.max_abs_error is None else words.error_size(case.max_abs_error)
        if case.reference_error:
            error += f" (torch's own {words.error_size(case.reference_error)})"
        time = "" if case.runtime_us is None else words.duration(case.runtime_us)
        reference = "" if case.ref_runtime_us is None else words.duration(case.ref_runtime_us)
        rows.append(f"| {plain(name)} | {right} | {error} | {_tolerance(case)} | {time} | {reference} |")
    if len(cases) > _MAX_CASES:
        rows.append(f"| and {len(cases) - _MAX_CASES} more | | | | | |")
    notes = [
        f"- {plain(case.name)}: {plain(case.region or case.message or '')}"
        for case in cases[:_MAX_CASES]
        if case.region or case.message
    ]
    return "\n".join(rows) + ("\n\n" + "\n".join(notes) if notes else "")


def _tolerance(case: CaseReport) -> str:
    if case.atol is None or case.rtol is None:
        return ""
    return f"{words.error_size(case.atol)} + {words.error_size(case.rtol)} of size ({case.tolerance_origin or 'ours'})"


def _figures(measurement: Measurement) -> str:
    lines = []
    timing = measurement.timing or {}
    named = [("device", "device_us"), ("call", "call_us"), ("graph replay", "graph_us")]
    times = [f"{label} {words.duration(timing[key])}" for label, key in named if _is_number(timing.get(key))]
    if times:
        lines.append(" · ".join(times) + _timer(timing, measurement.samples))
    if said := words.critic(measurement):
        lines.append(plain(said))
    if measurement.regime:
        floor = measurement.floor_us
        lines.append(
            measurement.regime + (f", floor {words.duration(floor)}" if floor is not None else "") + _roof(measurement)
        )
    profile = measurement.result.profile
    if profile is not None and profile.top_stalls:
        lines.append(
            "stalls: " + ", ".join(f"{plain(name)} {words.share(part)}" for name, part in profile.top_stalls[:3])
        )
    if measurement.ab and measurement.ab.get("verdict"):
        lines.append(_ab(measurement.ab))
    return "  \n".join(lines)


def _timer(timing: dict[str, object], samples: Sequence[Samples]) -> str:
    facts = []
    interval = timing.get("interval_us")
    if isinstance(interval, (list, tuple)) and len(interval) == 2 and all(_is_number(each) for each in interval):
        facts.append(f"interval {words.duration(interval[0])} to {words.duration(interval[1])}")
    if timing.get("n"):
        facts.append(f"n = {timing['n']}")
    timer = timing.get("timer") or next((each.timer for each in samples), "")
    if timer:
        facts.append(f"timer {timer}")
    if timing.get("cold") is not None:
        facts.append("cold L2" if timing["cold"] else "warm L2")
    if timing.get("cpu_threads"):
        facts.append(f"{timing['cpu_threads']} CPU threads")
    return f" ({', '.join(plain(str(fact)) for fact in facts)})" if facts else ""


def _roof(measurement: Measurement) -> str:
    profile = measurement.result.profile
    if profile is None or profile.roofline_position is None:
        return ""
    if profile.roofline_position > 1.0:
        return ", at the roof"
    return f", {words.share(profile.roofline_position)} of this card's measured roof"


def _ab(ab: dict[str, object]) -> str:
    text = words.ab_words(ab)
    interval = ab.get("interval")
    if isinstance(interval, (list, tuple)) and len(interval) == 2 and all(_is_number(each) for each in interval):
        text += f", interval {words.ratio(float(interval[0]))} to {words.ratio(float(interval[1]))}"
    return text + (f", n = {ab['n']}" if ab.get("n") else "")


def _opponents(measurement: Measurement) -> str:
    if not measurement.opponents:
        return ""
    rows = ["| opponent | time | |", "|---|---|---|"]
    for each in measurement.opponents:
        time_us = each.get("runtime_us")
        time = words.duration(float(time_us)) if isinstance(time_us, (int, float)) else ""
        name = plain(str(each.get("name", "")))
        why = plain(str(each.get("reason") or each.get("error") or ""))
        if each.get("admissible") is True:
            rows.append(f"| {name} | {time} | |")
        else:
            rows.append(
                f"| ~~{name}~~ | ~~{time}~~ | {why or 'not admissible'} |" if time else f"| ~~{name}~~ | | {why} |"
            )
    return "\n".join(rows)


def _resources(kernels: Sequence[KernelFacts]) -> str:
    lines = []
    for kernel in kernels[:4]:
        facts = []
        if kernel.registers is not None:
            facts.append(f"{kernel.registers} registers")
        if kernel.spill_bytes is not None:
            facts.append("no spills" if kernel.spill_bytes == 0 else f"spills {words.size_bytes(kernel.spill_bytes)}")
        if kernel.shared_bytes is not None:
            facts.append(f"shared {words.size_bytes(kernel.shared_bytes)}")
        if kernel.warps is not None:
            facts.append(f"{kernel.warps} warps")
        if kernel.stages is not None:
            facts.append(f"{kernel.stages} stages")
        if kernel.theoretical_occupancy is not None:
            facts.append(f"theoretical occupancy {words.share(kernel.theoretical_occupancy)}")
        if facts:
            config = f" ({plain(kernel.config)})" if kernel.config else ""
            lines.append(f"`{plain(kernel.name)}`{config}: {', '.join(facts)}")
    return "  \n".join(lines)


def _flags(measurement: Measurement) -> str:
    return "\n".join(f"- {plain(flag.message)}" for flag in measurement.flags[:8])


def _provenance(measurement: Measurement, seq: int) -> str:
    env = measurement.environment
    facts = [env.card or "no GPU"]
    facts += [f"driver {env.driver}"] if env.driver else []
    facts += [f"torch {env.torch}"] if env.torch else []
    facts += [f"triton {env.triton}"] if env.triton else []
    facts += [f"Python {env.python}", measurement.mode.value, f"seed {measurement.seed}"]
    facts += [f"compared as {measurement.format}"] if measurement.format else []
    facts += [f"text {measurement.kernel_sha[:8]}", f"evaluator {env.evaluator_sha[:8]}", f"row {seq}"]
    if measurement.measured_at:
        facts.append(measurement.measured_at)
    return "*" + plain(" · ".join(str(fact) for fact in facts)) + "*"


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def unjudged(name: str, bound: Bound | None, *, leads: bool) -> str:
    """The card of a kernel that has no verdict yet."""
    title = f"**{plain(name)}**"
    if bound is None:
        return f"{title} · not looked at yet"
    if not bound.packed:
        return f"{title} · no reference\n\n{plain(bound.refusal_words)}"
    if not leads:
        return f"{title} · judged together with `{plain(bound.anchor)}`"
    shapes = ", ".join(plain(case) for case in bound.cases[:8]) + (", ..." if len(bound.cases) > 8 else "")
    lines = [f"{title} · not judged yet", f"Compared as {plain(bound.format)}: {plain(bound.evidence)}"]
    return "\n\n".join(lines + ([f"Shapes: {shapes}"] if shapes else []))
