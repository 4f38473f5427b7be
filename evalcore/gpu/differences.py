"""Owns counting how two tensors differ, tile by tile, with one synchronisation at the end. Never decides a verdict.

Temporaries stay under about 256 MB whatever the tensors' size: a tile has at most 4 Mi elements and some eight float64
copies of it live at once. Nothing is brought to the host before the last tile.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from evalcore.gpu.inputs import is_poison
from evalcore.region import Spread

TILE_ELEMENTS = 4 << 20
_ROW_FLOOR = 1e-3
"""A row's magnitude counts as at least this part of the whole output's: rows that cancel to nothing would otherwise
ask for exact zeros."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """|got - want| <= atol + rtol * scale; scale is |want| itself, or the row's largest |want| where `by_row`."""

    atol: float
    rtol: float
    by_row: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """What `measure` found. Errors are absolute; ratios are over the row's largest |want|."""

    elements: int
    out: int
    nonfinite: int
    worst_abs: float
    worst_ratio: float
    worst_index: tuple[int, ...]
    got: float
    want: float
    magnitude: float
    untouched: bool
    located: int
    """How many elements the spreads speak of: those that are not finite where there are any, else all that are out."""
    spreads: tuple[Spread, ...]


def measure(
    got: torch.Tensor, want: torch.Tensor, rule: Rule, *, alias: torch.Tensor | None = None
) -> Differences | None:
    """Compare tensors of one shape. None where they are empty.

    `alias` is a second acceptable source of NaN and infinities: the reference's own output beside the float64 key.
    """
    if want.numel() == 0:
        return None
    shape = tuple(got.shape)
    if got.dtype.is_complex:
        got, want = torch.view_as_real(got.contiguous()), torch.view_as_real(want.contiguous())
        alias = None if alias is None else torch.view_as_real(alias.contiguous())
    columns = got.shape[-1] if got.ndim else 1
    flat = _Flat(
        got=got.contiguous().reshape(-1, columns),
        want=want.contiguous().reshape(-1, columns),
        alias=None if alias is None else alias.contiguous().reshape(-1, columns),
    )
    return flat.count(rule, shape)


def row_magnitude(want: torch.Tensor) -> torch.Tensor:
    """[R, C] -> [R, 1] float64: the row's largest finite |want|, at least a thousandth of the whole tensor's."""
    rows: list[torch.Tensor] = []
    for rows_of, columns_of in _tiles(want.shape[0], want.shape[1]):
        tile = want[rows_of, columns_of].double().abs()
        largest = torch.where(torch.isfinite(tile), tile, 0.0).amax(dim=1, keepdim=True)
        if columns_of.start:
            rows[-1] = torch.maximum(rows[-1], largest)
        else:
            rows.append(largest)
    scale = torch.cat(rows)
    whole = scale.amax()
    scale = torch.maximum(scale, whole * _ROW_FLOOR)
    return torch.where(whole > 0, scale, torch.ones_like(scale))


def _tiles(rows: int, columns: int) -> Iterator[tuple[slice, slice]]:
    wide = min(columns, TILE_ELEMENTS)
    high = max(TILE_ELEMENTS // wide, 1)
    if wide < columns:
        high = 1
    for top in range(0, rows, high):
        for left in range(0, columns, wide):
            yield slice(top, min(top + high, rows)), slice(left, min(left + wide, columns))


class _Marks:
    """Which rows and which columns of [R, C] hold an element of some kind."""

    def __init__(self, rows: int, columns: int, device: torch.device) -> None:
        self.rows = torch.zeros(rows, dtype=torch.bool, device=device)
        self.columns = torch.zeros(columns, dtype=torch.bool, device=device)

    def add(self, marked: torch.Tensor, rows_of: slice, columns_of: slice) -> None:
        """Take in one tile."""
        self.rows[rows_of] |= marked.any(dim=1)
        self.columns[columns_of] |= marked.any(dim=0)


@dataclass(slots=True)
class _Flat:
    got: torch.Tensor
    want: torch.Tensor
    alias: torch.Tensor | None

    def count(self, rule: Rule, shape: tuple[int, ...]) -> Differences:
        rows, columns = self.got.shape
        device = self.got.device
        exact = not self.got.dtype.is_floating_point
        scale = None if exact else row_magnitude(self.want)
        out_at = _Marks(rows, columns, device)
        nonfinite_at = _Marks(rows, columns, device)
        totals = torch.zeros(3, dtype=torch.int64, device=device)
        worst: list[torch.Tensor] = []
        for rows_of, columns_of in _tiles(rows, columns):
            got, want = self.got[rows_of, columns_of], self.want[rows_of, columns_of]
            alias = None if self.alias is None else self.alias[rows_of, columns_of]
            if exact:
                error, bad, nonfinite = _exact_tile(got, want)
                ratio = error
            else:
                assert scale is not None
                error, bad, nonfinite = _float_tile(got, want, alias, rule, scale[rows_of])
                ratio = error / scale[rows_of]
            out_at.add(bad, rows_of, columns_of)
            nonfinite_at.add(nonfinite, rows_of, columns_of)
            totals += torch.stack([bad.sum(), nonfinite.sum(), (bad & is_poison(got)).sum()])
            worst.append(_worst(got, want, error, ratio, nonfinite))
        table = torch.stack(worst).cpu()
        found = int(table[:, 0].argmax())
        out, nonfinite_count, poisoned = totals.tolist()
        marks, located = (nonfinite_at, nonfinite_count) if nonfinite_count else (out_at, out)
        first = list(_tiles(rows, columns))[found]
        position = (first[0].start, first[1].start, first[1].stop - first[1].start)
        return Differences(
            elements=math.prod(shape),
            out=out,
            nonfinite=nonfinite_count,
            worst_abs=float(table[:, 1].max()),
            worst_ratio=float(table[:, 2].max()),
            worst_index=_index(position, int(table[found, 3]), columns, tuple(self._full_shape(shape)))[: len(shape)],
            got=float(table[found, 4]),
            want=float(table[found, 5]),
            magnitude=0.0 if scale is None else float(scale.amax()),
            untouched=located > 0 and poisoned == located,
            located=located,
            spreads=_spreads(marks.rows, marks.columns, shape) if located else (),
        )

    def _full_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        extra = self.got.numel() // max(math.prod(shape), 1)
        return (*shape, extra) if extra > 1 else shape


def _float_tile(
    got: torch.Tensor, want: torch.Tensor, alias: torch.Tensor | None, rule: Rule, scale: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    g, w = got.double(), want.double()
    finite = torch.isfinite(g) & torch.isfinite(w)
    error = torch.where(finite, (g - w).abs(), 0.0)
    limit = rule.atol + rule.rtol * (scale if rule.by_row else w.abs())
    same = (g == w) | (torch.isnan(g) & torch.isnan(w))
    if alias is not None:
        a = alias.double()
        same |= (g == a) | (torch.isnan(g) & torch.isnan(a))
    nonfinite = ~finite & ~same
    return error, (finite & (error > limit)) | nonfinite, nonfinite


def _exact_tile(got: torch.Tensor, want: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    bad = got != want
    return (got.double() - want.double()).abs(), bad, torch.zeros_like(bad)


def _worst(
    got: torch.Tensor, want: torch.Tensor, error: torch.Tensor, ratio: torch.Tensor, nonfinite: torch.Tensor
) -> torch.Tensor:
    """[6] float64: rank, largest error, largest ratio, flat place of the worst in the tile, got and want there."""
    rank = torch.where(nonfinite, torch.inf, error.to(torch.float64)).reshape(-1)
    place = rank.argmax()
    values = [rank[place], error.amax(), ratio.amax(), place, got.reshape(-1)[place], want.reshape(-1)[place]]
    return torch.stack([value.to(torch.float64) for value in values])


def _index(position: tuple[int, int, int], place: int, columns: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    top, left, wide = position
    flat = (top + place // wide) * columns + left + place % wide
    index: list[int] = []
    for size in reversed(shape):
        index.append(flat % size)
        flat //= size
    return tuple(reversed(index))


def _spreads(bad_rows: torch.Tensor, bad_columns: torch.Tensor, shape: tuple[int, ...]) -> tuple[Spread, ...]:
    if not shape:
        return ()
    inner = bad_columns if bad_columns.numel() == shape[-1] else bad_rows
    if inner is bad_rows:
        bad_rows = bad_rows.reshape(shape)
        return tuple(_spread(_any_but(bad_rows, dim)) for dim in range(len(shape)))
    outer = bad_rows.reshape(shape[:-1]) if len(shape) > 1 else None
    lead = [] if outer is None else [_spread(_any_but(outer, dim)) for dim in range(outer.ndim)]
    return (*lead, _spread(inner))


def _any_but(mask: torch.Tensor, dim: int) -> torch.Tensor:
    others = [each for each in range(mask.ndim) if each != dim]
    return mask.any(dim=others) if others else mask


def _spread(mask: torch.Tensor) -> Spread:
    places = mask.nonzero().reshape(-1)
    count = places.numel()
    if count == 0:
        return Spread(size=mask.numel(), count=0, first=0, last=0)
    first, last = int(places[0]), int(places[-1])
    period = 0
    if 3 <= count < last - first + 1:
        steps = places[1:] - places[:-1]
        if bool((steps == steps[0]).all()):
            period = int(steps[0])
    return Spread(size=mask.numel(), count=count, first=first, last=last, period=period)
