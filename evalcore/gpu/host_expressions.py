"""Owns translating C++ host expressions into Python expressions. Whatever it does not know well is Unsupported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from evalcore.gpu.host_runtime import DTYPES, FLOAT_TYPES, MATH, SCALAR_TYPES, is_integer_type
from evalcore.gpu.host_tokens import Token, Unsupported, closing, split
from evalcore.gpu.host_types import TYPE_WORDS, CppType, angle, bare, read_type

_BINARY = (
    {"||": "or"}, {"&&": "and"}, {"|": "|"}, {"^": "^"}, {"&": "&"}, {"==": "==", "!=": "!="},
    {"<": "<", ">": ">", "<=": "<=", ">=": ">="}, {"<<": "<<"}, {"+": "+", "-": "-"}, {"*": "*", "/": "/", "%": "%"},
)
_WORDS = {
    "true": "True", "false": "False", "nullptr": "0", "NULL": "0", "cudaSuccess": "0", "INFINITY": "float('inf')",
    "FLT_MAX": "3.4028234663852886e+38", "INT_MAX": "2147483647", "M_PI": "3.141592653589793",
}
_MAKERS = {"zeros", "ones", "empty", "full", "rand", "randn"}
_LIKES = {"zeros_like", "ones_like", "empty_like", "full_like"}
_TORCH = {"matmul", "mm", "bmm", "sum", "mean", "relu", "cat", "stack", "transpose", "add", "mul", "sigmoid", "tanh"}
_IGNORED_CALLS = {
    "cudaGetLastError", "cudaPeekAtLastError", "cudaFuncSetAttribute", "cudaFuncSetCacheConfig",
    "cudaStreamSynchronize", "cudaDeviceSynchronize", "getCurrentCUDAStream", "getDefaultCUDAStream",
    "getStreamFromPool",
}
_PLAIN_METHODS = {
    "numel", "dim", "ndimension", "stride", "contiguous", "is_contiguous", "t", "transpose", "view", "reshape",
    "expand", "permute", "unsqueeze", "squeeze", "flatten", "clone", "zero_", "fill_", "sum", "mean", "element_size",
    "nbytes", "is_floating_point", "get_device", "select", "narrow", "detach", "mul", "add", "sub", "div", "view_as",
    "expand_as",
    "storage_offset", "copy_", "abs", "max", "min", "item",
}


@dataclass(slots=True)
class Scope:
    """Names in sight: C++ name -> Python name, innermost last, and what lies outside."""

    functions: frozenset[str] = frozenset()
    frames: list[dict[str, str]] = field(default_factory=lambda: [{}])
    types: set[str] = field(default_factory=lambda: {"scalar_t"})
    """Names that stand for a dtype while a dispatch runs."""
    count: int = 0

    def find(self, name: str) -> str | None:
        return next((frame[name] for frame in reversed(self.frames) if name in frame), None)

    def declare(self, name: str) -> str:
        self.count += 1
        python = f"v{self.count}_{name}"
        self.frames[-1][name] = python
        return python


class Expressions:
    """Reads one expression from tokens; `text()` is its Python."""

    def __init__(self, tokens: Sequence[Token], scope: Scope) -> None:
        self.tokens = tokens
        self.scope = scope
        self.index = 0

    def text(self) -> str:
        """The whole of the tokens as one expression."""
        made = self.ternary()
        if self.index != len(self.tokens):
            raise Unsupported(f"{self.tokens[self.index].text!r} in an expression")
        return made

    def peek(self) -> str:
        return self.tokens[self.index].text if self.index < len(self.tokens) else ""

    def take(self) -> Token:
        if self.index >= len(self.tokens):
            raise Unsupported("an expression that ends early")
        self.index += 1
        return self.tokens[self.index - 1]

    def expect(self, text: str) -> None:
        if self.take().text != text:
            raise Unsupported(f"no {text!r} where one is wanted")

    def ternary(self) -> str:
        test = self.binary(0)
        if self.peek() != "?":
            return test
        self.take()
        yes = self.ternary()
        self.expect(":")
        return f"({yes} if {test} else {self.ternary()})"

    def binary(self, level: int) -> str:
        if level == len(_BINARY):
            return self.unary()
        left = self.binary(level + 1)
        while self.peek() in _BINARY[level] and self.tokens[self.index].kind == "op":
            operator = self.take().text
            right = self.binary(level + 1)
            if operator == "/":
                left = f"rt.divide({left}, {right})"
            elif operator == "%":
                left = f"rt.remainder({left}, {right})"
            else:
                left = f"({left} {_BINARY[level][operator]} {right})"
        return left

    def unary(self) -> str:
        operator = self.peek() if self.index < len(self.tokens) and self.tokens[self.index].kind == "op" else ""
        if operator in {"-", "+", "~"}:
            self.take()
            return f"({operator}{self.unary()})"
        if operator == "!":
            self.take()
            return f"(not {self.unary()})"
        if operator in {"*", "&", "++", "--"}:
            raise Unsupported(f"the operator {operator!r}")
        return self.postfix(self.primary())

    def primary(self) -> str:
        token = self.take()
        if token.kind == "number":
            return _number(token.text)
        if token.kind == "string":
            made = token.text
            while self.index < len(self.tokens) and self.tokens[self.index].kind == "string":
                made += " " + self.take().text
            return f"({made})"
        if token.text == "(":
            return self._bracketed()
        if token.text == "{":
            self.index -= 1
            return f"[{', '.join(self.arguments('{'))}]"
        if token.kind == "name":
            return self._named(token.text)
        raise Unsupported(f"{token.text!r} in an expression")

    def _bracketed(self) -> str:
        found = read_type(self.tokens, self.index)
        if found is not None and found[1] < len(self.tokens) and self.tokens[found[1]].text == ")":
            kind = found[0]
            if kind.pointer or is_integer_type(kind.name) or kind.name in FLOAT_TYPES | {"bool"}:
                self.index = found[1] + 1
                return self._cast(kind, self.unary())
        inner = self.ternary()
        self.expect(")")
        return f"({inner})"

    def _cast(self, kind: CppType, value: str) -> str:
        if kind.pointer:
            return f"rt.cast_pointer({value}, {self._size_of(kind.name)})"
        return f"rt.to_type({kind.name!r}, {value})"

    def _size_of(self, name: str) -> str:
        sizes = {"float4": 16, "float2": 8, "half2": 4, "__half2": 4, "int4": 16, "int2": 8, "double2": 16, "void": 1,
                 "uint4": 16, "uint2": 8, "__nv_bfloat162": 4, "char": 1, "nv_bfloat162": 4}
        if name in sizes:
            return str(sizes[name])
        if name in DTYPES:
            return str(DTYPES[name].itemsize)
        if name in self.scope.types and self.scope.find(name):
            return f"{self.scope.find(name)}.itemsize"
        raise Unsupported(f"a pointer to {name}")

    def arguments(self, opening: str = "(") -> list[str]:
        """The bracketed list at the current place, each part as Python."""
        self.index += 0
        if self.peek() != opening:
            raise Unsupported("a call without brackets")
        close = closing(self.tokens, self.index)
        parts = split(self.tokens[self.index + 1 : close])
        self.index = close + 1
        return [Expressions(part, self.scope).text() for part in parts]

    def _template(self) -> str | None:
        """The text in angle brackets before a call, if there is one."""
        if self.peek() != "<":
            return None
        close = angle(self.tokens, self.index)
        if close is None or close + 1 >= len(self.tokens) or self.tokens[close + 1].text != "(":
            return None
        inner = self.tokens[self.index + 1 : close]
        self.index = close + 1
        return " ".join(token.text for token in inner).replace(" *", "*")

    # -------------------------------------------------------------------------------------------------------- names

    def _named(self, name: str) -> str:
        if name in _WORDS:
            return _WORDS[name]
        variable = self.scope.find(name)
        if variable is not None:
            return variable
        if name in self.scope.functions and self.peek() == "(":
            return f"f_{name}({', '.join(self.arguments())})"
        if name in {"static_cast", "reinterpret_cast", "const_cast"}:
            return self._named_cast()
        if name == "sizeof":
            return self._sizeof()
        short = bare(name)
        constant = _constant(name, short)
        if constant is not None:
            return constant
        if name in TYPE_WORDS or is_integer_type(name):
            self.index -= 1
            return self._functional_cast()
        template = self._template()
        if self.peek() in {"(", "{"}:
            return self._call(name, short, template)
        raise Unsupported(f"the name {name}")

    def _named_cast(self) -> str:
        close = angle(self.tokens, self.index)
        found = read_type(self.tokens, self.index + 1)
        if close is None or found is None or found[1] != close:
            raise Unsupported("a cast to this type")
        self.index = close + 1
        (value,) = self.arguments()
        return self._cast(found[0], value)

    def _sizeof(self) -> str:
        self.expect("(")
        found = read_type(self.tokens, self.index)
        if found is None:
            raise Unsupported("sizeof of an expression")
        self.index = found[1]
        self.expect(")")
        return "8" if found[0].pointer else self._size_of(found[0].name)

    def _functional_cast(self) -> str:
        found = read_type(self.tokens, self.index)
        if found is None:
            raise Unsupported("a cast to this type")
        self.index = found[1]
        (value,) = self.arguments(self.peek())
        return self._cast(found[0], value)

    def _call(self, name: str, short: str, template: str | None) -> str:
        last = short.split("::")[-1]
        if last in _IGNORED_CALLS:
            self.index = closing(self.tokens, self.index) + 1
            return "rt.synchronize()" if last == "cudaDeviceSynchronize" else "0"
        if last == "cudaGetErrorString":
            self.arguments()
            return "''"
        arguments = ", ".join(self.arguments(self.peek()))
        if short == "dim3":
            return f"rt.Dim3({arguments})"
        if short in MATH and (name == short or name.startswith("std::")):
            return f"rt.MATH[{short!r}]({arguments})"
        if name.startswith(("torch::", "at::", "c10::")):
            return self._torch_call(short, arguments)
        if short in {"make_tuple", "make_pair"} and name.startswith("std::"):
            return f"({arguments},)"
        if short == "device_of":
            return "0"
        raise Unsupported(f"a call of {name}")

    @staticmethod
    def _torch_call(short: str, arguments: str) -> str:
        if short in _MAKERS:
            return f"rt.make({short!r}, {arguments})"
        if short in _LIKES:
            return f"rt.like({short!r}, {arguments})"
        if short == "TensorOptions":
            return "rt.Options()"
        if short in {"dtype", "device"}:
            return f"rt.Options().with_({short!r}, rt.first({arguments}))"
        if short in _TORCH:
            return f"torch.{short}({arguments})"
        if short == "IntArrayRef":
            return f"rt.first({arguments})"
        raise Unsupported(f"torch::{short}")

    # -------------------------------------------------------------------------------------------------------- postfix

    def postfix(self, value: str) -> str:
        while True:
            sign = self.peek()
            if sign in {".", "->"}:
                self.take()
                value = self._member(value, self.take().text)
            elif sign == "[":
                close = closing(self.tokens, self.index)
                inside = Expressions(self.tokens[self.index + 1 : close], self.scope).text()
                self.index = close + 1
                value = f"{value}[{inside}]"
            else:
                return value

    def _member(self, value: str, name: str) -> str:
        template = self._template()
        if self.peek() != "(":
            if name in {"x", "y", "z"}:
                return f"{value}.{name}"
            raise Unsupported(f"the member {name}")
        given = self.arguments()
        joined = ", ".join(given)
        if name in {"data_ptr", "data", "mutable_data_ptr", "const_data_ptr"} and not given:
            return self._data_ptr(value, template)
        if name in {"dtype", "device"}:
            return f"{value}.with_({name!r}, {given[0]})" if given else f"{value}.{name}"
        if name in {"requires_grad", "layout", "memory_format"} and given:
            return value
        simple = {
            "scalar_type": f"{value}.dtype", "options": f"rt.options_of({value})", "sizes": f"list({value}.shape)",
            "strides": f"list({value}.stride())", "is_cuda": f"rt.is_cuda({value})", "type": f"rt.kind({value})",
            "defined": f"({value} is not None)", "has_value": f"({value} is not None)", "value": value, "vec": value,
            "index": f"({value}.index or 0)", "stream": value, "is_cpu": f"(not rt.is_cuda({value}))",
        }
        if name in simple and not given:
            return simple[name]
        if name == "size":
            return f"{value}.size({joined})" if given else f"len({value})"
        if name == "push_back":
            return f"{value}.append({joined})"
        if name == "to":
            return f"{value}.to({joined})"
        if name in _PLAIN_METHODS:
            return f"{value}.{'dim' if name == 'ndimension' else name}({joined})"
        raise Unsupported(f"the method {name}")

    def _data_ptr(self, value: str, template: str | None) -> str:
        if template is None or template == "void":
            return f"rt.data_ptr({value})"
        if template in self.scope.types and self.scope.find(template):
            return f"rt.data_ptr({value}, {self.scope.find(template)})"
        name = template.replace("const ", "")
        if name not in DTYPES:
            raise Unsupported(f"data_ptr<{template}>")
        return f"rt.data_ptr({value}, {name!r})"


def _number(text: str) -> str:
    if text.lower().startswith("0x"):
        return str(int(text.rstrip("uUlL"), 16))
    digits = text.rstrip("uUlL")
    if digits.isdigit():
        return str(int(digits, 8) if len(digits) > 1 and digits[0] == "0" else int(digits))
    return repr(float(text.rstrip("fFlL")))


def _constant(name: str, short: str) -> str | None:
    """torch::kFloat32, at::ScalarType::Half, torch::kCUDA and the like."""
    last = short.split("::")[-1]
    if short in {"kCUDA", "DeviceType::CUDA"}:
        return "torch.device('cuda')"
    if short in {"kCPU", "DeviceType::CPU"}:
        return "torch.device('cpu')"
    word = last[1:] if last.startswith("k") and name != short else last
    if (short.startswith("ScalarType::") or (last.startswith("k") and name != short)) and word in SCALAR_TYPES:
        return f"rt.SCALAR_TYPES[{word!r}]"
    if short in {"nullopt", "nullopt_t"}:
        return "None"
    return None
