"""Owns the text of a starter reference: what a person gets beside a kernel that nothing binds. Never guesses silently.

The text is bound by its own comment, so it is judged as soon as it is saved; a wrapper that is not recognised by name
gets a body that the person has to write.
"""

from __future__ import annotations

import ast
import re

from evalcore.bindings.binding import Source, loads, parse, stores
from evalcore.bindings.calls import flat_module, global_names, host_map
from evalcore.bindings.sizes import unpacked_shapes
from evalcore.names import dotted

_KNOWN: tuple[tuple[tuple[str, ...], int, str], ...] = (
    (("softmax",), 1, "torch.softmax({0}, dim=-1)"),
    (("layer_norm", "layernorm"), 3, "torch.nn.functional.layer_norm({0}, {0}.shape[-1:], {1}, {2})"),
    (("layer_norm", "layernorm"), 1, "torch.nn.functional.layer_norm({0}, {0}.shape[-1:])"),
    (("rms_norm", "rmsnorm"), 2, "torch.nn.functional.rms_norm({0}, {0}.shape[-1:], {1})"),
    (("attention", "attn", "flash"), 3, "torch.nn.functional.scaled_dot_product_attention({0}, {1}, {2})"),
    (("matmul", "gemm", "mm", "bmm"), 2, "torch.matmul({0}, {1})"),
    (("add",), 2, "{0} + {1}"),
    (("mul",), 2, "{0} * {1}"),
    (("sub",), 2, "{0} - {1}"),
    (("gelu",), 1, "torch.nn.functional.gelu({0})"),
    (("silu", "swish"), 1, "torch.nn.functional.silu({0})"),
    (("leaky_relu",), 1, "torch.nn.functional.leaky_relu({0})"),
    (("relu",), 1, "torch.relu({0})"),
    (("sigmoid",), 1, "torch.sigmoid({0})"),
    (("tanh",), 1, "torch.tanh({0})"),
    (("exp",), 1, "torch.exp({0})"),
    (("cumsum",), 1, "torch.cumsum({0}, dim=-1)"),
    (("sum", "reduce"), 1, "{0}.sum(dim=-1)"),
    (("mean",), 1, "{0}.mean(dim=-1)"),
    (("max",), 1, "{0}.amax(dim=-1)"),
    (("transpose",), 1, "{0}.t().contiguous()"),
    (("copy", "clone"), 1, "{0}.clone()"),
)
"""(words of a wrapper's name, number of tensors, torch's expression)."""
_SIZES = (1024, 512, 2048, 768)
_CUDA_PARAM = re.compile(
    r"(?P<const>const\s+)?(?P<type>[\w:<> ]+?)\s*(?P<star>\*)?\s*(?:__restrict__\s+|const\s+)*(?P<name>\w+)$"
)
_CUDA_TYPES = {"__half": "float16", "half": "float16", "__nv_bfloat16": "bfloat16", "double": "float64"}
_TENSOR_WORDS = {
    "shape",
    "stride",
    "numel",
    "size",
    "contiguous",
    "device",
    "is_contiguous",
    "data_ptr",
    "element_size",
}


def starter_reference(text: str, wrapper: str) -> str | None:
    """Python to append to `text`: a comment that binds, a reference, inputs. None where `wrapper` is no function."""
    source = parse("starter.py", text)
    if not isinstance(source, Source):
        return None
    function = host_map(source.tree).functions.get(wrapper)
    if function is None:
        return None
    tensors, plain = _parameters(function)
    if not tensors:
        return None
    taken = frozenset().union(*(stores(each) for each in flat_module(source.tree.body)), frozenset())
    return _written(wrapper, tensors, plain, _dimensions(function, tensors, taken), _imports(source.tree))


def starter_for_kernel(text: str, kernel: str) -> str | None:
    """The same for the wrapper that launches `kernel`, or a comment for a kernel of a .cu text; None where none fits."""
    source = parse("starter.py", text)
    if not isinstance(source, Source):
        return _cuda_comment(text, kernel) if kernel in global_names(text) else None
    hosts = host_map(source.tree)
    for name in hosts.functions:
        if kernel in hosts.mentions.get(name, ()):
            found = starter_reference(text, name)
            if found is not None:
                return found
    return None


def _cuda_comment(text: str, kernel: str) -> str | None:
    """A comment that binds a __global__ function: const pointers are inputs, other pointers outputs, numbers sizes."""
    found = re.search(rf"\b{re.escape(kernel)}\s*\(([^)]*)\)", text)
    words = [_CUDA_PARAM.match(part.strip()) for part in found.group(1).split(",")] if found else []
    params = [match for match in words if match]
    inputs = [match for match in params if match["star"] and match["const"]]
    outputs = [match["name"] for match in params if match["star"] and not match["const"]]
    if not inputs or not outputs or len(params) != len(words):
        return None
    names = [match["name"] for match in inputs]
    made = []
    for match in inputs:
        dtype = _CUDA_TYPES.get(match["type"], "")
        extra = f", dtype=torch.{dtype}" if dtype else ""
        made.append(f'{match["name"]}=torch.randn(1000000, device="cuda"{extra})')
    total = f"{names[0]}.numel()"
    args = [match["name"] if match["star"] else (total if "float" not in match["type"] else "1.0") for match in params]
    guess = _guess(kernel, names).split("  #")[0]
    return (
        f"\n// odyssey: kernel={kernel} reference={guess} inputs={', '.join(made)}\n"
        f"// odyssey: grid=(({total} + 255) // 256,) block=(256,) args=({', '.join(args)}) outputs={', '.join(outputs)}\n"
    )


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[list[str], list[tuple[str, str]]]:
    """(tensors, (name, value) of the others without a default)."""
    positional = [*function.args.posonlyargs, *function.args.args]
    required = positional[: len(positional) - len(function.args.defaults)]
    tensors: list[str] = []
    plain: list[tuple[str, str]] = []
    for argument in required:
        kind = dotted(argument.annotation).rsplit(".", 1)[-1] if argument.annotation is not None else ""
        if kind == "Tensor" or (not kind and _used_as_tensor(function, argument.arg)):
            tensors.append(argument.arg)
        elif kind in ("float", "bool", "str"):
            plain.append((argument.arg, {"float": "1.0", "bool": "True", "str": '""'}[kind]))
        else:
            plain.append((argument.arg, "1"))
    return tensors, plain


def _used_as_tensor(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool:
    """Its attributes are a tensor's, or it is handed to a kernel or a `*_like` factory."""
    for each in ast.walk(function):
        if isinstance(each, ast.Attribute) and each.attr in _TENSOR_WORDS and dotted(each.value) == name:
            return True
        if isinstance(each, ast.Call) and dotted(each.func).endswith("_like") and name in loads(each):
            return True
    return False


def _dimensions(
    function: ast.FunctionDef | ast.AsyncFunctionDef, tensors: list[str], taken: frozenset[str]
) -> dict[str, list[str]]:
    """Dimension names by tensor: the wrapper's own where it unpacks a shape, else two plain ones."""
    shapes = unpacked_shapes(function)
    first = next((shapes[name] for name in tensors if name in shapes), ["rows", "columns"])
    found = {}
    for tensor in tensors:
        words = shapes.get(tensor, first)
        known = [word or first[min(index, len(first) - 1)] for index, word in enumerate(words)]
        found[tensor] = [_free(word or "size", taken) for word in known]
    return found


def _free(word: str, taken: frozenset[str]) -> str:
    return word if word not in taken else f"{word}_"


def _written(
    wrapper: str,
    tensors: list[str],
    plain: list[tuple[str, str]],
    dimensions: dict[str, list[str]],
    imports: str,
) -> str:
    names = list(dict.fromkeys(word for words in dimensions.values() for word in words))
    sizes = [f"{name} = {_SIZES[index % len(_SIZES)]}" for index, name in enumerate(names)]
    made = [f'torch.randn({", ".join(dimensions[name])}, device="cuda")' for name in tensors]
    parameters = ", ".join([*tensors, *(name for name, _value in plain)])
    values = ", ".join([*made, *(value for _name, value in plain)])
    return "\n".join(
        [
            "",
            "",
            f"# odyssey: reference={wrapper}_reference inputs={wrapper}_inputs candidate={wrapper}",
            *([imports, ""] if imports else []),
            *sizes,
            "",
            "",
            f"def {wrapper}_reference({parameters}):",
            f'    """What {wrapper} should compute, in plain torch."""',
            f"    return {_guess(wrapper, tensors)}",
            "",
            "",
            f"def {wrapper}_inputs():",
            f'    """One set of arguments for {wrapper}."""',
            f"    return [{values}]",
            "",
        ]
    )


def _guess(wrapper: str, tensors: list[str]) -> str:
    """torch's own operation of that name, else an ellipsis that the person replaces."""
    lower = wrapper.lower()
    for words, count, expression in _KNOWN:
        if count == len(tensors) and any(word in lower for word in words):
            return expression.format(*tensors)
    return f"...  # write here what {wrapper} should compute"


def _imports(tree: ast.Module) -> str:
    known = {alias.asname or alias.name for each in tree.body if isinstance(each, ast.Import) for alias in each.names}
    return "" if "torch" in known else "import torch"
