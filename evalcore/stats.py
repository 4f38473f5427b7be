"""Owns what may be said about samples: centre, spread, interval, when to stop, and whether A is faster than B.

Pure and deterministic: no resampling with random numbers, so the ledger can be judged again and gives the same answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

AB_ALPHA = 0.002
"""Two-sided error of an A/B interval: a text against itself may be called different at most once in 200 times, and the
noise of a real card has heavier tails than the model."""
AB_LEAST_EFFECT = 0.0075
"""A smaller difference is never called faster or slower: addresses and alignment alone make half a percent."""
AB_SAME = 0.015
"""An interval inside +- this is 'same'."""
_NORMAL_MAD = 1.4826


def median(values: Sequence[float]) -> float:
    """The middle value, or the mean of the two middle ones. Raises ValueError for none."""
    if not values:
        raise ValueError("no samples")
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def spread(values: Sequence[float]) -> float:
    """Median absolute deviation, scaled to a normal's standard deviation. 0.0 for fewer than two."""
    if len(values) < 2:
        return 0.0
    centre = median(values)
    return _NORMAL_MAD * median([abs(value - centre) for value in values])


def median_interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """Interval of the median by ranks, exact for any distribution: [lo, hi] covers it with at least `confidence`.

    With too few samples for that (under 6 at 95 %) it is the range. Raises ValueError for none.
    """
    if not values:
        raise ValueError("no samples")
    ordered = sorted(values)
    n = len(ordered)
    rank = _lower_rank(n, 1 - confidence)
    return ordered[rank], ordered[n - 1 - rank]


def _lower_rank(n: int, alpha: float) -> int:
    """Largest r (from 0) with P(Binomial(n, 1/2) <= r) <= alpha / 2, so that ranks r and n-1-r enclose; 0 if none."""
    if n > 1000:
        return max(int(n / 2 - _normal_quantile(1 - alpha / 2) * math.sqrt(n) / 2) - 1, 0)
    whole = 2**n
    total = 0
    rank = 0
    for k in range(n // 2):
        total += math.comb(n, k)
        if total > alpha / 2 * whole:
            break
        rank = k
    return min(rank, (n - 1) // 2)


def relative_error(values: Sequence[float]) -> float:
    """Half the median's interval over the median: what a stopping rule looks at. Infinite for none."""
    if not values:
        return math.inf
    low, high = median_interval(values)
    centre = median(values)
    return (high - low) / (2 * centre) if centre > 0 else math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRule:
    """When enough samples were taken."""

    least: int = 10
    most: int = 100
    relative_error: float = 0.01
    seconds: float = math.inf
    """A budget: past it, stop as soon as `least` samples are there."""

    def done(self, values_us: Sequence[float], elapsed_s: float = 0.0) -> bool:
        """True when no further sample is wanted."""
        count = len(values_us)
        if count < self.least:
            return False
        return count >= self.most or elapsed_s >= self.seconds or relative_error(values_us) <= self.relative_error


FAST = StopRule(least=10, most=10)
THOROUGH = StopRule(least=100, most=100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One figure in short."""

    n: int
    median_us: float
    low_us: float
    high_us: float
    spread_us: float


def summarise(values_us: Sequence[float], confidence: float = 0.95) -> Summary | None:
    """Median with its interval and spread; None for no samples."""
    if not values_us:
        return None
    low, high = median_interval(values_us, confidence)
    return Summary(n=len(values_us), median_us=median(values_us), low_us=low, high_us=high, spread_us=spread(values_us))


def noise_floor(values_us: Sequence[float]) -> float:
    """The relative difference below which two medians of samples like these say nothing: 3 standard errors."""
    if len(values_us) < 2:
        return math.inf
    centre = median(values_us)
    if centre <= 0:
        return math.inf
    return 3 * 1.2533 * spread(values_us) / (centre * math.sqrt(len(values_us)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """B against A. `ratio` is time of B over time of A: below 1 is faster."""

    verdict: str
    """'faster' | 'slower' | 'same' | 'ambiguous'."""
    ratio: float
    low: float
    high: float
    n: int


def compare_pairs(a_us: Sequence[float], b_us: Sequence[float], alpha: float = AB_ALPHA) -> Comparison:
    """Decide from interleaved pairs: a_us[i] and b_us[i] were taken side by side, so what both felt cancels.

    The centre of ln(b/a) is the Hodges-Lehmann estimate (median of all pairwise means), its interval that of the signed
    rank test: robust to outliers, and two thirds of the pairs a sign test would need. Raises ValueError where the
    lengths differ or a time is not positive.
    """
    if len(a_us) != len(b_us):
        raise ValueError("A and B were not taken in pairs")
    if any(value <= 0 for value in (*a_us, *b_us)):
        raise ValueError("a time that is not positive")
    logs = [math.log(b / a) for a, b in zip(a_us, b_us, strict=True)]
    if len(logs) < 6:
        ratio = math.exp(median(logs)) if logs else math.nan
        return Comparison(verdict="ambiguous", ratio=ratio, low=0.0, high=math.inf, n=len(logs))
    centre, low, high = _hodges_lehmann(logs, alpha)
    return Comparison(
        verdict=_ab_verdict(centre, low, high),
        ratio=math.exp(centre),
        low=math.exp(low),
        high=math.exp(high),
        n=len(logs),
    )


def _ab_verdict(centre: float, low: float, high: float) -> str:
    if high < 0 and centre <= -AB_LEAST_EFFECT:
        return "faster"
    if low > 0 and centre >= AB_LEAST_EFFECT:
        return "slower"
    if low >= -AB_SAME and high <= AB_SAME:
        return "same"
    return "ambiguous"


def _hodges_lehmann(values: Sequence[float], alpha: float) -> tuple[float, float, float]:
    n = len(values)
    walsh = sorted((values[i] + values[j]) / 2 for i in range(n) for j in range(i, n))
    total = len(walsh)
    mean = n * (n + 1) / 4
    deviation = math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
    rank = max(int(mean - _normal_quantile(1 - alpha / 2) * deviation) - 1, 0)
    if n <= 20:
        rank = _exact_signed_rank(n, alpha)
    rank = min(rank, (total - 1) // 2)
    return median(walsh), walsh[rank], walsh[total - 1 - rank]


def _exact_signed_rank(n: int, alpha: float) -> int:
    """Largest r (from 0) with P(W <= r) <= alpha / 2 under the null, by counting sign patterns; 0 if none."""
    counts = [1]
    for k in range(1, n + 1):
        longer = counts + [0] * k
        for index, count in enumerate(counts):
            longer[index + k] += count
        counts = longer
    limit = alpha / 2 * 2**n
    total = 0
    for rank, count in enumerate(counts):
        total += count
        if total > limit:
            return max(rank - 1, 0)
    return 0


def _normal_quantile(p: float) -> float:
    """Inverse of the normal distribution, by bisection of erf: a few microseconds and no table."""
    low, high = -10.0, 10.0
    for _step in range(80):
        middle = (low + high) / 2
        if 0.5 * (1 + math.erf(middle / math.sqrt(2))) < p:
            low = middle
        else:
            high = middle
    return (low + high) / 2
