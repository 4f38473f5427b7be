"""Owns what torch's factories and casts say by name: which arguments are sizes, which name a dtype. Never evaluates."""

from __future__ import annotations

from tree_sitter import Node

from server.analysis.syntax import dotted
from server.analysis.values import TensorValue, Value

FACTORIES = {"rand", "randn", "empty", "zeros", "ones", "full", "randint", "new_empty", "new_zeros", "new_ones"}
LIKE = {"empty_like", "zeros_like", "ones_like", "rand_like", "randn_like", "full_like"}
SAME = {
    "contiguous", "cuda", "clone", "detach", "requires_grad_", "normal_", "uniform_", "to", "float", "half", "bfloat16",
    "double", "fill_", "zero_",
}  # fmt: skip
CASTS = {"float": "float32", "half": "float16", "bfloat16": "bfloat16", "double": "float64"}


def size_nodes(name: str, positional: list[Node], named: dict[str, Node]) -> list[Node]:
    """The arguments of a factory call that are its shape."""
    if "size" in named:
        return [named["size"]]
    if name == "randint":
        return [each for each in positional if each.type in ("tuple", "list", "identifier")][-1:]
    return positional[:1] if name == "full" else positional


def dtype_of(named: dict[str, Node]) -> str | None:
    """The dtype that a call names by keyword."""
    return torch_dtype(named["dtype"]) if "dtype" in named else None


def torch_dtype(node: Node) -> str | None:
    """torch's name of a dtype that is written as `torch.float16`."""
    name = dotted(node)
    return name.split(".", 1)[1] if name.startswith("torch.") else None


def retyped(value: Value, dtype: str | None) -> Value:
    """A tensor with another dtype, where one is known."""
    return TensorValue(value.shape, dtype) if isinstance(value, TensorValue) and dtype is not None else value
