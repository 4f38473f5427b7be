"""Owns drawing; the only module that imports matplotlib (extra `plot`). Figures come from server.plot_data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from server.plot_data import History, Roofline

SIZE_INCHES = (9.0, 6.0)
MOST_LABELS = 12
"""More labels than that cover each other; the newest ones are kept."""


class CannotPlot(Exception):
    """matplotlib is missing or the file's ending is unknown; the message has the remedy."""


def draw_roofline(data: Roofline, target: Path) -> None:
    """Write a PNG or SVG by the target's ending. Raises CannotPlot."""
    figure, axes = _figure(target)
    for roof in data.roofs:
        (x1, y1), (x2, y2) = roof.points
        axes.plot([x1, x2], [y1, y2], color="#555555", linewidth=1.2)
        level = y1 == y2
        axes.annotate(roof.label, (x2 if level else x1, y2 if level else y1), fontsize=8, color="#555555",
                      ha="right" if level else "left", va="bottom", rotation=0 if level else 30)  # fmt: skip
    axes.scatter(
        [point.x for point in data.points], [point.y for point in data.points], s=28, color="#1565c0", zorder=3
    )
    for point in data.points[-MOST_LABELS:]:
        axes.annotate(point.label, (point.x, point.y), fontsize=7, xytext=(4, -8), textcoords="offset points")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(data.x_label)
    axes.set_ylabel(data.y_label)
    _finish(figure, axes, f"{data.card}: measured roofs", data.note, target)


def draw_history(data: History, target: Path, title: str) -> None:
    """Write a PNG or SVG by the target's ending. Raises CannotPlot."""
    figure, axes = _figure(target)
    seqs, times = [point.x for point in data.points], [point.y for point in data.points]
    axes.plot(seqs, times, color="#90a4ae", linewidth=1, zorder=1)
    axes.scatter(seqs, times, s=28, color="#1565c0", zorder=2)
    if times:
        best = times.index(min(times))
        axes.scatter([seqs[best]], [times[best]], s=70, color="#2e7d32", zorder=3)
        axes.annotate(data.points[best].label, (seqs[best], times[best]), fontsize=8, xytext=(6, 6),
                      textcoords="offset points")  # fmt: skip
        axes.set_ylim(bottom=0)
    axes.set_xlabel("ledger row")
    axes.set_ylabel(data.y_label)
    _finish(figure, axes, f"{title} on {data.card or 'no card'}", data.note, target)


def _figure(target: Path) -> tuple[Any, Any]:
    if target.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise CannotPlot(f"{target.name}: give a name that ends in .png, .svg or .pdf")
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as problem:
        raise CannotPlot(f"plots need matplotlib: pip install 'odyssey-lsp[plot]' ({problem})") from problem
    figure = Figure(figsize=SIZE_INCHES, dpi=120)
    FigureCanvasAgg(figure)
    return figure, figure.add_subplot()


def _finish(figure: Any, axes: Any, title: str, note: str | None, target: Path) -> None:
    axes.set_title(title, fontsize=11)
    axes.grid(visible=True, which="both", alpha=0.2)
    if note:
        figure.text(0.01, 0.01, note, fontsize=7, color="#777777")
    figure.tight_layout()
    figure.savefig(target)
