"""Owns translating C++ host functions into Python functions, statement by statement. Never runs them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from evalcore.gpu.cuda_text import KernelText
from evalcore.gpu.host_expressions import Expressions, Scope
from evalcore.gpu.host_runtime import FLOAT_TYPES, is_integer_type
from evalcore.gpu.host_tokens import HostFunction, Macro, Token, Unsupported, closing, expand, split
from evalcore.gpu.host_types import CppType, bare, read_type

_CHECKS = {"TORCH_CHECK", "AT_ASSERTM", "TORCH_INTERNAL_ASSERT", "AT_ASSERT", "TORCH_CHECK_ARG", "CHECK"}
_IGNORED = {"C10_CUDA_KERNEL_LAUNCH_CHECK", "AT_CUDA_CHECK", "C10_CUDA_CHECK", "CUDA_CHECK", "TORCH_WARN"}
_GUARDS = {"CUDAGuard", "cuda::CUDAGuard", "OptionalCUDAGuard", "cuda::OptionalCUDAGuard", "DeviceGuard"}
_FLOATING = ["torch.float32", "torch.float64"]
_INTEGRAL = ["torch.uint8", "torch.int8", "torch.int16", "torch.int32", "torch.int64"]
_DISPATCHES = {
    "AT_DISPATCH_FLOATING_TYPES_AND_HALF": (0, [*_FLOATING, "torch.float16"]),
    "AT_DISPATCH_FLOATING_TYPES_AND2": (2, _FLOATING),
    "AT_DISPATCH_FLOATING_TYPES_AND": (1, _FLOATING),
    "AT_DISPATCH_FLOATING_TYPES": (0, _FLOATING),
    "AT_DISPATCH_REDUCED_FLOATING_TYPES": (0, ["torch.float16", "torch.bfloat16"]),
    "AT_DISPATCH_ALL_TYPES_AND2": (2, [*_FLOATING, *_INTEGRAL]),
    "AT_DISPATCH_ALL_TYPES_AND": (1, [*_FLOATING, *_INTEGRAL]),
    "AT_DISPATCH_ALL_TYPES": (0, [*_FLOATING, *_INTEGRAL]),
    "AT_DISPATCH_INTEGRAL_TYPES": (0, _INTEGRAL),
}
_ASSIGN = {"=", "+=", "-=", "*=", "/=", "%="}


class Translator:
    """One C++ text's host functions as Python source."""

    def __init__(
        self, functions: Mapping[str, HostFunction], kernels: Mapping[str, KernelText], macros: Mapping[str, Macro]
    ) -> None:
        self.functions = functions
        self.kernels = kernels
        self.macros = dict(macros)
        self.constants: dict[str, str] = {}
        self.lines: list[str] = []

    def function(self, name: str) -> str:
        """Python source of `def f_<name>(...)`. Raises Unsupported."""
        written = self.functions[name]
        self.scope = Scope(functions=frozenset(self.functions))
        self.scope.frames[0].update(self.constants)
        self.scope.frames.append({})
        self.lines = []
        self.result = _result_kind(written.result)
        parameters = self._parameters(written.parameters)
        self._block(expand(list(written.body), self.macros), 1)
        return "\n".join([f"def f_{name}({', '.join(parameters)}):", *self.lines, "    return None"])

    def _parameters(self, tokens: Sequence[Token]) -> list[str]:
        parameters = []
        for part in split(expand(list(tokens), self.macros)):
            found = read_type(part, 0)
            if found is None or found[1] >= len(part) or part[found[1]].kind != "name":
                raise Unsupported("a parameter of this kind")
            name = part[found[1]].text
            python = self.scope.declare(name)
            rest = part[found[1] + 1 :]
            default = f"={Expressions(rest[1:], self.scope).text()}" if rest and rest[0].text == "=" else ""
            parameters.append(f"{python}{default}")
            self._emit(1, f"{python} = rt.take({_parameter_kind(found[0])!r}, {python}, {name!r})")
        return parameters

    def _emit(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def _expression(self, tokens: Sequence[Token]) -> str:
        return Expressions(tokens, self.scope).text()

    # ------------------------------------------------------------------------------------------------------ blocks

    def _block(self, tokens: Sequence[Token], depth: int) -> None:
        before = len(self.lines)
        self.scope.frames.append({})
        index = 0
        while index < len(tokens):
            index = self._statement(tokens, index, depth)
        self.scope.frames.pop()
        if len(self.lines) == before:
            self._emit(depth, "pass")

    def _statement(self, tokens: Sequence[Token], index: int, depth: int) -> int:
        """Translates the statement at `index`; returns where the next begins."""
        text = tokens[index].text
        if text == ";":
            return index + 1
        if text == "{":
            close = closing(tokens, index)
            self._block(tokens[index + 1 : close], depth)
            return close + 1
        if text in {"if", "while", "for"}:
            return getattr(self, f"_{text}")(tokens, index, depth)
        if text in {"switch", "do", "try", "throw", "goto", "template", "struct", "class", "continue"}:
            raise Unsupported(text)
        end = index
        while end < len(tokens) and tokens[end].text != ";":
            end = closing(tokens, end) + 1 if tokens[end].text in {"(", "{", "["} else end + 1
        self._simple(tokens[index:end], depth)
        return end + 1

    def _body(self, tokens: Sequence[Token], index: int, depth: int) -> int:
        if tokens[index].text == "{":
            close = closing(tokens, index)
            self._block(tokens[index + 1 : close], depth)
            return close + 1
        before = len(self.lines)
        index = self._statement(tokens, index, depth)
        if len(self.lines) == before:
            self._emit(depth, "pass")
        return index

    def _if(self, tokens: Sequence[Token], index: int, depth: int) -> int:
        start = index + (2 if tokens[index + 1].text == "constexpr" else 1)
        close = closing(tokens, start)
        self._emit(depth, f"if {self._expression(tokens[start + 1 : close])}:")
        index = self._body(tokens, close + 1, depth + 1)
        if index < len(tokens) and tokens[index].text == "else":
            self._emit(depth, "else:")
            index = self._body(tokens, index + 1, depth + 1)
        return index

    def _while(self, tokens: Sequence[Token], index: int, depth: int) -> int:
        close = closing(tokens, index + 1)
        self._emit(depth, f"while {self._expression(tokens[index + 2 : close])}:")
        return self._body(tokens, close + 1, depth + 1)

    def _for(self, tokens: Sequence[Token], index: int, depth: int) -> int:
        close = closing(tokens, index + 1)
        parts = split(tokens[index + 2 : close], ";")
        if len(parts) != 3:
            raise Unsupported("a range-based for")
        self.scope.frames.append({})
        if parts[0]:
            self._simple(parts[0], depth)
        self._emit(depth, f"while {self._expression(parts[1]) if parts[1] else 'True'}:")
        after = self._body(tokens, close + 1, depth + 1)
        for step in split(parts[2]):
            self._simple(step, depth + 1)
        self.scope.frames.pop()
        return after

    # ------------------------------------------------------------------------------------------------ simple statements

    def _simple(self, tokens: Sequence[Token], depth: int) -> None:
        first = tokens[0].text
        if first == "return":
            self._return(tokens[1:], depth)
        elif first == "using":
            self._using(tokens)
        elif first == "break":
            self._emit(depth, "break")
        elif first in _CHECKS or bare(first) in _CHECKS:
            parts = [self._expression(part) for part in split(tokens[2 : closing(tokens, 1)])]
            self._emit(depth, f"rt.check({', '.join(parts)})")
        elif first in _IGNORED:
            return
        elif first.startswith("AT_DISPATCH"):
            self._dispatch(tokens, depth)
        elif first in self.kernels and any(token.text == "<<<" for token in tokens):
            self._launch(tokens, depth)
        elif not self._declaration(tokens, depth) and not self._assignment(tokens, depth):
            self._emit(depth, self._expression(tokens))

    def _return(self, tokens: Sequence[Token], depth: int) -> None:
        if self.in_dispatch:
            raise Unsupported("return inside a dispatch")
        if not tokens:
            self._emit(depth, "return None")
            return
        value = self._expression(tokens)
        if self.result == "tuple":
            value = f"tuple({value})"
        elif is_integer_type(self.result) or self.result in FLOAT_TYPES:
            value = f"rt.to_type({self.result!r}, {value})"
        self._emit(depth, f"return {value}")

    in_dispatch = False

    def _using(self, tokens: Sequence[Token]) -> None:
        if len(tokens) == 4 and tokens[2].text == "=" and self.scope.find(tokens[3].text):
            self.scope.frames[-1][tokens[1].text] = self.scope.find(tokens[3].text) or ""
            self.scope.types.add(tokens[1].text)
        elif len(tokens) > 1 and tokens[1].text == "namespace":
            return
        else:
            raise Unsupported("using")

    def _declaration(self, tokens: Sequence[Token], depth: int) -> bool:
        found = read_type(tokens, 0)
        if found is None or found[1] >= len(tokens) or tokens[found[1]].kind != "name":
            return False
        kind, index = found
        if kind.name in _GUARDS:
            return True
        known = kind.pointer or kind.name in {"auto", "Tensor", "dim3", "bool", "cudaError_t", "cudaStream_t", "vector",
                                              "TensorOptions", "ScalarType", "Device", "IntArrayRef", "CUDAStream",
                                              "cuda::CUDAStream", "string"}
        if not known and not is_integer_type(kind.name) and kind.name not in FLOAT_TYPES:
            raise Unsupported(f"a variable of type {kind.name}")
        for part in split(tokens[index:]):
            self._declare(kind, part, depth)
        return True

    def _declare(self, kind: CppType, part: Sequence[Token], depth: int) -> None:
        pointer = kind.pointer
        while part and part[0].text in {"*", "&"}:
            pointer, part = pointer or part[0].text == "*", part[1:]
        name, rest = part[0].text, part[1:]
        if not rest:
            value = "rt.Dim3()" if kind.name == "dim3" else "[]" if kind.name == "vector" else "None"
        elif rest[0].text == "=":
            value = self._expression(rest[1:])
        elif rest[0].text in "({" and closing(rest, 0) == len(rest) - 1:
            values = [self._expression(one) for one in split(rest[1:-1])]
            value = self._constructed(kind, values)
        else:
            raise Unsupported("a declaration of this form")
        if not pointer and (is_integer_type(kind.name) or kind.name in FLOAT_TYPES or kind.name == "bool") and rest:
            value = f"rt.to_type({kind.name!r}, {value})"
        elif kind.name == "dim3" and rest and not value.startswith("rt.Dim3"):
            value = f"rt.Dim3(*rt.dims({value}))"
        self._emit(depth, f"{self.scope.declare(name)} = {value}")

    @staticmethod
    def _constructed(kind: CppType, values: list[str]) -> str:
        if kind.name == "dim3":
            return f"rt.Dim3({', '.join(values)})"
        if kind.name == "vector":
            return f"[{', '.join(values)}]"
        if len(values) == 1:
            return values[0]
        raise Unsupported(f"a constructor of {kind.name}")

    def _assignment(self, tokens: Sequence[Token], depth: int) -> bool:
        last = tokens[-1].text
        if last in {"++", "--"} or tokens[0].text in {"++", "--"}:
            counted = tokens[:-1] if last in {"++", "--"} else tokens[1:]
            sign = "+" if "++" in (last, tokens[0].text) else "-"
            self._emit(depth, f"{self._target(counted)} {sign}= 1")
            return True
        place = next((i for i, token in enumerate(tokens) if token.kind == "op" and token.text in _ASSIGN), None)
        if place is None:
            return False
        target, operator = self._target(tokens[:place]), tokens[place].text
        value = self._expression(tokens[place + 1 :])
        if operator == "/=":
            value, operator = f"rt.divide({target}, {value})", "="
        self._emit(depth, f"{target} {operator} {value}")
        return True

    def _target(self, tokens: Sequence[Token]) -> str:
        target = self._expression(tokens)
        if not re.fullmatch(r"\w+(?:\.\w+)*(?:\[[^\[\]]*\])?", target):
            raise Unsupported("an assignment to this")
        return target

    # ---------------------------------------------------------------------------------------------- dispatch and launch

    def _dispatch(self, tokens: Sequence[Token], depth: int) -> None:
        if tokens[0].text not in _DISPATCHES:
            raise Unsupported(tokens[0].text)
        extra, allowed = _DISPATCHES[tokens[0].text]
        parts = split(tokens[2 : closing(tokens, 1)])
        more = [self._expression(part) for part in parts[:extra]]
        kind, name = self._expression(parts[extra]), self._expression(parts[extra + 1])
        body = parts[extra + 2]
        while body and body[0].text == "(":
            body = body[1 : closing(body, 0)]
        if not body or body[0].text != "[":
            raise Unsupported("a dispatch without a lambda")
        start = next(i for i, token in enumerate(body) if token.text == "{")
        self.scope.frames.append({})
        variable = self.scope.declare("scalar_t")
        self._emit(depth, f"for {variable} in rt.dispatch([{', '.join([*allowed, *more])}], {kind}, {name}):")
        before, self.in_dispatch = self.in_dispatch, True
        self._block(body[start + 1 : closing(body, start)], depth + 1)
        self.in_dispatch = before
        self.scope.frames.pop()

    def _launch(self, tokens: Sequence[Token], depth: int) -> None:
        kernel = self.kernels[tokens[0].text]
        opening = next(i for i, token in enumerate(tokens) if token.text == "<<<")
        close = next((i for i, token in enumerate(tokens) if token.text == ">>>"), None)
        if close is None or close + 1 >= len(tokens) or tokens[close + 1].text != "(":
            raise Unsupported("a launch of this form")
        templates = [self._template_argument(part) for part in split(tokens[2 : opening - 1])] if opening > 1 else []
        if len(templates) != len(kernel.template):
            raise Unsupported("a launch whose template arguments are deduced")
        config = [self._expression(part) for part in split(tokens[opening + 1 : close])]
        if not 2 <= len(config) <= 4:
            raise Unsupported("a launch of this form")
        arguments = [self._expression(part) for part in split(tokens[close + 2 : closing(tokens, close + 1)])]
        shared = config[2] if len(config) > 2 else "0"
        self._emit(
            depth,
            f"launch({kernel.name!r}, [{', '.join(templates)}], {config[0]}, {config[1]}, {shared}, "
            f"[{', '.join(arguments)}])",
        )

    def _template_argument(self, tokens: Sequence[Token]) -> str:
        text = " ".join(token.text for token in tokens)
        if all(token.kind == "name" and self.scope.find(token.text) is None for token in tokens):
            return repr(text)
        return f"rt.template_argument({self._expression(tokens)})"


def _result_kind(tokens: Sequence[Token]) -> str:
    found = read_type(tokens, 0)
    return found[0].name if found is not None else "void"


def _parameter_kind(kind: CppType) -> str:
    if kind.pointer:
        raise Unsupported("a pointer parameter")
    if kind.name == "Tensor":
        return "tensor"
    if kind.name == "optional":
        return "optional"
    if kind.name in {"vector", "IntArrayRef", "ArrayRef", "TensorList"}:
        return "list"
    if kind.name == "bool" or kind.name in FLOAT_TYPES or is_integer_type(kind.name):
        return kind.name
    raise Unsupported(f"a parameter of type {kind.name}")
