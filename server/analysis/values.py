"""Owns what is known of a host value without running anything: whole numbers as upper bounds, tensors as shapes.

Unknown is None and stays None through every operation.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Number:
    """A whole number that is at most `most`; exactly that where `exact`."""

    most: int
    exact: bool = True


@dataclass(frozen=True, slots=True)
class TensorValue:
    """A tensor with its sizes, as far as they are known, and torch's name of its dtype."""

    shape: tuple[Number | None, ...] | None
    dtype: str | None

    @property
    def numel(self) -> Number | None:
        """Number of elements."""
        if self.shape is None or any(each is None for each in self.shape):
            return None
        known = [each for each in self.shape if each is not None]
        return Number(math.prod(each.most for each in known), all(each.exact for each in known))

    def stride(self, dim: int) -> Number | None:
        """Stride of a contiguous tensor."""
        if self.shape is None:
            return None
        rest = self.shape[dim:][1:] if dim >= 0 else self.shape[len(self.shape) + dim :][1:]
        return TensorValue(rest, None).numel


@dataclass(frozen=True, slots=True)
class Several:
    """A tuple or list of values."""

    items: tuple[Value, ...]


Value = Number | TensorValue | Several | None


def operate(operator: str, left: Number | None, right: Number | None) -> Number | None:
    """Arithmetic on upper bounds of numbers that are not negative. None where the bound would not hold."""
    if left is None or right is None:
        return None
    exact = left.exact and right.exact
    a, b = left.most, right.most
    if operator == "+":
        return Number(a + b, exact)
    if operator == "*":
        return Number(a * b, exact)
    if operator == "-":
        return Number(max(a - b, 0), exact) if right.exact else None
    if operator == "//":
        return Number(a // b, exact) if right.exact and b > 0 else None
    if operator == "%":
        return Number(a % b, True) if exact and b > 0 else (Number(b - 1, False) if b > 0 else None)
    if operator == "**":
        return Number(a**b, exact) if b <= 62 and a <= 1 << 20 else None
    if operator == "<<":
        return Number(a << b, exact) if b <= 62 else None
    if operator == ">>":
        return Number(a >> b, exact) if right.exact and b <= 62 else None
    return None


def cdiv(left: Number | None, right: Number | None) -> Number | None:
    """The number of blocks."""
    if left is None or right is None or not right.exact or right.most <= 0:
        return None
    return Number(-(-left.most // right.most), left.exact)


def whole(text: str) -> int | None:
    """A whole-number literal of Python."""
    try:
        return int(re.sub(r"_", "", text), 0)
    except ValueError:
        return None


def larger(one: Value, other: Value) -> Value:
    """The larger of two guesses about one value; what is known wins over what is not."""
    if one is None or other is None:
        return other if one is None else one
    if isinstance(one, Number) and isinstance(other, Number):
        return Number(max(one.most, other.most), one.exact and other.exact and one.most == other.most)
    if isinstance(one, TensorValue) and isinstance(other, TensorValue):
        first, second = one.numel, other.numel
        if first is None or (second is not None and second.most > first.most):
            return other
    return one


def arithmetic(name: str, numbers: list[Number | None]) -> Number | None:
    """`cdiv`, `next_power_of_2`, `int`, `min` and `max` of upper bounds."""
    known = [each for each in numbers if each is not None]
    if name == "cdiv" and len(numbers) == 2:
        return cdiv(numbers[0], numbers[1])
    if name == "next_power_of_2" and len(known) == 1:
        return Number(1 << max(known[0].most - 1, 0).bit_length(), known[0].exact)
    if name == "int" and len(known) == 1:
        return known[0]
    if name == "min" and known:
        return Number(
            min(each.most for each in known), len(known) == len(numbers) and all(each.exact for each in known)
        )
    if name == "max" and known and len(known) == len(numbers):
        return Number(max(each.most for each in known), all(each.exact for each in known))
    return None
