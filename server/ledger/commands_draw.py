"""Owns the commands `odyssey map` and `odyssey plot`. Never lays out and never computes a figure."""

from __future__ import annotations

import argparse
import dataclasses
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from server.host import Host
from server.ledger.commands import OK, Stop, Subparsers, chosen, file_in, filters, open_ledger, say, verb


def register(commands: Subparsers) -> None:
    """Add `map` and `plot`."""
    drawn = verb(commands, "map", "the candidates of a kernel: who made what from what, and where it ended", _map)
    drawn.add_argument("--format", choices=("text", "dot", "svg", "json"), default="text")
    drawn.add_argument("--out", type=Path, help="write to a file")
    filters(drawn)
    plot = commands.add_parser("plot", help="roofline or history as PNG or SVG (extra: plot)")
    kinds = plot.add_subparsers(title="plots", metavar="PLOT", required=True)
    for name, words, work in (
        ("roofline", "each candidate under this card's measured roofs", _roofline),
        ("history", "times of a kernel in order", _history),
    ):
        made = verb(kinds, name, words, work)
        made.add_argument("--out", type=Path, default=None, help=f"default: {name}.png")
        filters(made)


def _map(options: argparse.Namespace, host: Host) -> int:
    from server.ledger import cards, drawing, listing

    with open_ledger(options, host) as ledger:
        made = ledger.map(file_in(ledger, options.file, host), options.kernel)
    here = cards.uuids_here(host)
    form = "json" if options.json else options.format
    drawn = {
        "text": lambda: drawing.as_text(made, here),
        "dot": lambda: drawing.as_dot(made),
        "svg": lambda: drawing.as_svg(made, here),
        "json": lambda: listing.dumped(drawing.as_plain(made)),
    }[form]()
    if options.out is None:
        say(drawn)
    else:
        options.out.write_text(drawn, encoding="utf-8")
        say(f"{len(made.nodes)} candidates in {options.out}\n")
    return OK


def _roofline(options: argparse.Namespace, host: Host) -> int:
    from server import plot_data

    with open_ledger(options, host) as ledger:
        rows = list(chosen(ledger, options, host))
    known = plot_data.known_ceilings([host.state_dir()])
    uuid = next((row.uuid for row in reversed(rows) if row.uuid in known), None)
    if uuid is None:
        raise Stop("no roof of a card that these rows were measured on is known: roofs are measured by odyssey doctor "
                   "or with the first verdict on a card")  # fmt: skip
    data = plot_data.roofline(rows, known[uuid])
    target = options.out or Path("roofline.png")
    return _drawn(options, data, target, lambda plot: plot.draw_roofline(data, target))


def _history(options: argparse.Namespace, host: Host) -> int:
    from server import plot_data

    with open_ledger(options, host) as ledger:
        rows = list(chosen(ledger, options, host))
    data = plot_data.history(rows)
    target = options.out or Path("history.png")
    title = options.kernel or options.file or "all kernels"
    return _drawn(options, data, target, lambda plot: plot.draw_history(data, target, title))


def _drawn(options: argparse.Namespace, data: Any, target: Path, draw: Callable[[Any], None]) -> int:
    from server.ledger import listing

    if options.json:
        say(listing.dumped({"schema": 1, **dataclasses.asdict(data)}))
        if options.out is None:
            return OK
    plot = importlib.import_module("server.plot")
    try:
        draw(plot)
    except plot.CannotPlot as problem:
        raise Stop(str(problem)) from problem
    if not options.json:
        say(f"{len(data.points)} points in {target}\n" + (f"{data.note}\n" if data.note else ""))
    return OK
