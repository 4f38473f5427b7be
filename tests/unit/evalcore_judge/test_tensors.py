"""Buffers, outputs, keys, comparison, probes and counts, on CPU tensors."""

from __future__ import annotations

import time
from collections import namedtuple
from typing import Any

import pytest
import torch

from evalcore.correctness import Strictness, output_right
from evalcore.gpu import differences, lifting
from evalcore.gpu.answer import answer
from evalcore.gpu.compare import compare, same_bits, wrongly_changed
from evalcore.gpu.counting import count
from evalcore.gpu.differences import Rule, measure
from evalcore.gpu.inputs import (
    UnsupportedInput,
    allocate,
    canaries_intact,
    fill_,
    flat_values,
    is_poison,
    poison_,
    raw_bytes,
    to_specs,
    view,
)
from evalcore.gpu.integrity import changed, snapshot
from evalcore.gpu.outputs import Output, flatten
from evalcore.gpu.probes import probes
from evalcore.problem import Tolerance


class Loaded:
    """As little of a loaded reference as is needed."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.state = dict(function.state_dict(keep_vars=True)) if isinstance(function, torch.nn.Module) else {}

    def call(self, inputs: list[Any]) -> Any:
        return self.function(*inputs)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)


RIGHT = Strictness()


def is_right(got: Any, key: Any, **how: Any) -> bool:
    return all(output_right(stats, RIGHT) for stats in compare(flatten(got), key, **how))


# ------------------------------------------------------------------ buffers
MIXED = [
    torch.randn(4, 5).t(), 3, [torch.ones(2), torch.arange(3)], {"a": torch.zeros(0, 3), "b": None},
    torch.randn(3, 1).expand(3, 4), torch.randn(3) > 0, torch.randn(2).to(torch.float8_e4m3fn), torch.tensor(2.0),
    torch.randn(3, dtype=torch.complex64),
]  # fmt: skip


def test_arguments_come_back_as_they_were() -> None:
    buffers = allocate(to_specs(MIXED), "cpu")
    fill_(buffers, flat_values(MIXED))
    back = buffers.arguments()
    assert back[1] == 3 and back[3]["b"] is None and isinstance(back[2], list)
    for old, new in zip(flat_values(MIXED), flat_values(back), strict=True):
        if isinstance(old, torch.Tensor):
            assert same_bits(old, new) and old.stride() == new.stride()
    assert canaries_intact(buffers) == []


def test_two_processes_lay_the_same_tensor_over_the_same_bytes() -> None:
    (spec,) = to_specs([torch.randn(3, 7)])
    raw = torch.zeros(raw_bytes(spec), dtype=torch.uint8)
    view(spec, raw).fill_(2.5)
    assert bool((view(spec, raw) == 2.5).all()) and view(spec, raw).data_ptr() % 64 == raw.data_ptr() % 64


@pytest.mark.parametrize(("offset", "words"), [(20, "past its end"), (-1, "before its start")])
def test_canaries_notice_a_write_beside_a_tensor(offset: int, words: str) -> None:
    buffers = allocate(to_specs([torch.zeros(4, 5)], ["x"]), "cpu")
    tensor = buffers.tensors[0]
    assert tensor is not None
    tensor.as_strided((1,), (1,), tensor.storage_offset() + offset).fill_(1.0)
    assert canaries_intact(buffers) == [f"x ({words})"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.uint8])
def test_poison_is_recognised(dtype: torch.dtype) -> None:
    tensor = poison_(torch.empty(8, dtype=dtype))
    assert bool(is_poison(tensor).all())
    tensor[3] = 1
    assert int(is_poison(tensor).sum()) == 7


def test_inputs_that_cannot_cross_are_named() -> None:
    with pytest.raises(UnsupportedInput, match="weird is a object"):
        to_specs([object()], ["weird"])
    with pytest.raises(UnsupportedInput, match="sparse"):
        to_specs([torch.eye(3).to_sparse()])


# ------------------------------------------------------------------ outputs
class Lazy(torch.Tensor):
    pass


def test_outputs_are_opened_and_subclasses_refused() -> None:
    Pair = namedtuple("Pair", "a b")
    found = flatten({"x": Pair(torch.ones(2), None), "y": [1.5, True, torch.nn.Parameter(torch.ones(1))]})
    assert [each.name for each in found] == ["out['x'][0]", "out['x'][1]", "out['y'][0]", "out['y'][1]", "out['y'][2]"]
    assert all(each.problem is None for each in found)
    assert found[2].number and found[2].tensor is not None and found[2].tensor.dtype is torch.float64
    (lazy,) = flatten(torch.ones(2).as_subclass(Lazy))
    assert lazy.problem == "a Lazy, not a plain tensor" and lazy.tensor is None
    assert flatten("text")[0].problem == "a str, which cannot be compared"
    assert flatten(torch.ones(2, device="meta"))[0].problem


def test_a_masked_class_is_seen_through() -> None:
    class Masked(torch.Tensor):
        @property
        def __class__(self) -> type:  # type: ignore[override]
            return torch.Tensor

    assert flatten(torch.ones(2).as_subclass(Masked))[0].problem == "a Masked, not a plain tensor"


# ------------------------------------------------------------------ keys and comparison
X = torch.randn(64, 300)


def test_the_key_is_exact_and_the_tolerance_fixed() -> None:
    key = answer(Loaded(lambda x: torch.softmax(x, 1)), [X], seed=1)
    exact, own, error = key.exact[0], key.own[0], key.reference_error[0]
    assert exact is not None and exact.dtype is torch.float64 and own is not None and error is not None
    assert 0 < error < 1e-7 and 1e-7 < own.rtol < 1e-4
    assert is_right(torch.softmax(X, 1), key)
    assert not is_right(torch.softmax(X.half(), 1).float(), key)


def test_modules_are_lifted_and_left_as_they_were() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(300, 16), torch.nn.GELU())
    key = answer(Loaded(module), [X], seed=1)
    assert key.exact[0] is not None and module[0].weight.dtype is torch.float32


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * torch.rand_like(x),
        lambda x: (x.float() if x.dtype is not torch.float64 else x.half()).sum(1),
        lambda x: torch.mm(x, torch.ones(300, 2)),
        lambda x: x.argmax(1),
    ],
)
def test_what_cannot_be_lifted_has_no_exact_key(function: Any) -> None:
    key = answer(Loaded(function), [X], seed=3)
    assert key.exact == [None]
    assert is_right(answer(Loaded(function), [X], seed=3).outputs[0].tensor, key)


def test_inputs_survive_a_reference_that_works_in_place() -> None:
    x = X.clone()
    key = answer(Loaded(lambda x: x.relu_()), [x], seed=1)
    assert same_bits(x, X) and list(key.mutated) == [0] and not key.in_place_only
    names = ["x"]
    assert wrongly_changed([X], [X.relu()], names, key) == ()
    assert wrongly_changed([X], [X.clone()], names, key) == ()
    assert wrongly_changed([X], [X * 2], names, key) == ("x",)
    plain = answer(Loaded(lambda x: x.relu()), [x], seed=1)
    assert wrongly_changed([X], [X.relu()], names, plain) == ("x",)


def test_a_reference_that_returns_nothing_is_judged_by_its_inputs() -> None:
    def reference(x: torch.Tensor, out: torch.Tensor) -> None:
        out.copy_(x * 2)

    key = answer(Loaded(reference), [X, torch.zeros_like(X)], seed=1)
    assert key.in_place_only and [each.name for each in key.outputs] == ["input 1"] and key.exact[0] is not None
    assert is_right(X * 2, key) and not is_right(X, key)


FAULTS = [
    (lambda good: good.half(), "dtype float16 instead of float32"),
    (lambda good: good[:, :1], "(it would merely broadcast)"),
    (lambda good: good[:, :7], "shape [64, 7] instead of [64, 300]"),
    (lambda good: (good, good), "2 outputs instead of 1"),
    (lambda good: None, "None where the reference returns a tensor"),
    (lambda good: 1.0, "a Python number instead of a tensor"),
    (lambda good: good.as_subclass(Lazy), "a Lazy, not a plain tensor"),
]


@pytest.mark.parametrize(("spoil", "words"), FAULTS)
def test_structural_faults_come_first(spoil: Any, words: str) -> None:
    good = torch.softmax(X, 1)
    key = answer(Loaded(lambda x: torch.softmax(x, 1)), [X], seed=1)
    (stats,) = compare(flatten(spoil(good)), key)
    assert words in (stats.problem or "")


def test_another_device_is_said() -> None:
    key = answer(Loaded(lambda x: x), [X], seed=1)
    (stats,) = compare([Output(name="out", tensor=X, device="cuda")], key)
    assert stats.problem == "on cuda instead of cpu"


def spoiled(good: torch.Tensor, at: Any, value: float) -> torch.Tensor:
    bad = good.clone()
    bad[at] = value
    return bad


REGIONS = [
    ((slice(None), slice(-7, None)), 0.0, "only the last 7 of each row"),
    ((slice(16, 24),), 9.0, "all in row block 3 of 8 (rows 16..23)"),
    ((slice(None), slice(128, None)), float("nan"), "columns >= 128 untouched"),
    ((3, 5), 9.0, "all in column 5 of row 3"),
    ((slice(None), slice(None, None, 4)), 9.0, "all in every 4th column"),
]


@pytest.mark.parametrize(("at", "value", "words"), REGIONS)
@pytest.mark.parametrize("tile", [1 << 22, 64, 700])
def test_errors_are_located_also_across_tiles(at: Any, value: float, words: str, tile: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(differences, "TILE_ELEMENTS", tile)
    key = answer(Loaded(lambda x: torch.softmax(x, 1)), [X], seed=1)
    (stats,) = compare([spoiled(torch.softmax(X, 1), at, value)], key)
    assert stats.region == words and stats.out_of_tolerance > 0
    (fine,) = compare([torch.softmax(X, 1)], key)
    assert fine.out_of_tolerance == 0 and fine.magnitude == pytest.approx(float(torch.softmax(X, 1).max()), rel=1e-6)


def test_the_worst_element_is_named() -> None:
    found = measure(spoiled(X, (5, 17), 99.0), X, Rule(atol=0.1, rtol=0.0, by_row=False))
    assert found is not None and (found.worst_index, found.got, found.out) == ((5, 17), 99.0, 1)


def test_nan_and_infinities_must_be_where_the_reference_has_them() -> None:
    x = torch.randn(1000)
    x[::17] = 0
    key = answer(Loaded(torch.log), [x], seed=1)
    assert is_right(torch.log(x), key)
    positive, negative = int((x > 0).nonzero()[0]), int((x < 0).nonzero()[0])
    for at, value in ((positive, float("nan")), (0, 0.0), (0, float("inf")), (negative, 1.0)):
        bad = torch.log(x)
        bad[at] = value
        assert not is_right(bad, key), (at, value)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint8, torch.bool])
def test_integers_and_bools_are_exact(dtype: torch.dtype) -> None:
    key = answer(Loaded(lambda x: (x * 3).to(dtype)), [X], seed=1)
    good = (X * 3).to(dtype)
    assert is_right(good, key)
    bad = good.clone()
    bad[3, 4] = not bool(bad[3, 4]) if dtype is torch.bool else bad[3, 4] + 1
    (stats,) = compare([bad], key)
    assert stats.tolerance_origin == "exact" and stats.out_of_tolerance == 1 and stats.worst_index == (3, 4)


@pytest.mark.parametrize("shape", [(0,), (0, 5), (), (1,), (2, 3, 4, 5)])
def test_odd_shapes(shape: tuple[int, ...]) -> None:
    x = torch.randn(shape)
    key = answer(Loaded(lambda x: x * 2), [x], seed=1)
    assert is_right(x * 2, key)
    if x.numel():
        assert not is_right(x * 3, key)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.complex64, torch.float64, torch.float8_e4m3fn])
def test_other_dtypes(dtype: torch.dtype) -> None:
    x = torch.randn(8, 33).to(dtype)
    key = answer(Loaded(lambda x: x.clone()), [x], seed=1)
    assert is_right(x.clone(), key)
    bad = x.clone()
    bad[2, 3] = 30.0
    (stats,) = compare([bad], key)
    assert stats.out_of_tolerance == 1 and stats.worst_index == (2, 3)


def test_tiny_outputs_need_tiny_errors_and_cancelled_rows_do_not() -> None:
    key = answer(Loaded(lambda x: torch.tanh(x) * 1e-6), [X], seed=1)
    assert not is_right(torch.zeros_like(X), key)
    centred = answer(Loaded(lambda x: x - x.mean(1, keepdim=True)), [torch.cat([X, torch.ones(1, 300)])], seed=1)
    assert centred.outputs[0].tensor is not None
    noise = centred.outputs[0].tensor.clone()
    noise[-1] = 3e-8
    assert is_right(noise, centred)


def test_a_format_decides_and_ours_stands_beside() -> None:
    key = answer(Loaded(lambda x: torch.tanh(x) * 1e-6), [X], seed=1)
    (stats,) = compare([torch.zeros_like(X)], key, format="kernelbench")
    assert (
        stats.out_of_tolerance == 0
        and (stats.measured_out or 0) > 0.99 * X.numel()
        and stats.tolerance_origin == "format"
    )
    assert not output_right(stats, Strictness(blind=True))
    person = Tolerance(atol=10.0, rtol=0.0, origin="person")
    (stats,) = compare([X + 5], answer(Loaded(lambda x: x), [X], seed=1), person)
    assert stats.out_of_tolerance == 0 and stats.tolerance_origin == "person"


def test_half_precision_as_exact_as_torch() -> None:
    a, b = torch.randn(64, 512).half(), torch.randn(512, 64).half()
    key = answer(Loaded(torch.matmul), [a, b], seed=1)
    assert is_right(a @ b, key)
    assert is_right((a.float() @ b.float()).half(), key)


def test_strides_are_said() -> None:
    key = answer(Loaded(lambda x: x * 2), [X], seed=1)
    (stats,) = compare(flatten((X * 2).t().contiguous().t()), key)
    assert stats.note == "strides [1, 64] instead of [300, 1]" and stats.out_of_tolerance == 0


# ------------------------------------------------------------------ probes, ranges, counts, integrity
def caught(function: Any, **how: Any) -> dict[str, bool]:
    key = answer(Loaded(function), [X], seed=1)
    stale = answer(Loaded(function), [torch.randn(64, 300)], seed=2)
    return {each["probe"]: each["caught"] for each in probes(key, stale.outputs, **how)}


def test_probes() -> None:
    everything = {"zeros", "mean", "permuted", "truncated", "stale"}
    assert {name for name, seen in caught(lambda x: torch.softmax(x, 1)).items() if seen} == everything
    blind = caught(lambda x: torch.tanh(x) * 1e-6, format="kernelbench")
    assert not any(blind.values())
    assert all(caught(lambda x: torch.tanh(x) * 1e-6).values())
    constant = caught(lambda x: torch.ones_like(x))
    assert constant["zeros"] and not constant["mean"] and not constant["stale"]
    assert caught(lambda x: x.argmax(1))["stale"]


def test_counts_are_lower_bounds() -> None:
    work = count(Loaded(torch.matmul), [torch.randn(64, 512), torch.randn(512, 128)])
    assert (work.flops, work.bytes_read, work.bytes_written) == (2 * 64 * 512 * 128, 4 * 640 * 153.6, 4 * 64 * 128)
    embedding = torch.nn.Embedding(100_000, 64)
    gathered = count(Loaded(embedding), [torch.tensor([1, 2, 3])])
    assert gathered.bytes_read == 3 * 64 * 4 + 3 * 8
    sliced = count(Loaded(lambda x: x[:, :8] + 1), [X])
    assert sliced.bytes_read == 64 * 8 * 4
    softmax = count(Loaded(lambda x: torch.softmax(x, 1)), [X])
    assert softmax.flops == 4 * X.numel() and softmax.origin == "counted"
    data_dependent = count(Loaded(lambda x: x * float(x.sum())), [X])
    assert data_dependent.bytes_read == X.numel() * 4


def test_replaced_functions_are_noticed(monkeypatch: Any) -> None:
    before = snapshot()
    assert changed(before) == []
    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)
    monkeypatch.setattr(torch, "allclose", lambda *a: True)
    monkeypatch.setattr("evalcore.gpu.outputs.flatten", lambda value: [])
    assert {"torch.allclose", "time.perf_counter", "evalcore.gpu.outputs.flatten"} <= set(changed(before))


@pytest.mark.parametrize(
    ("function", "liftable"),
    [
        (lambda x: torch.softmax(x, 1), True),
        (lambda x: (x.relu(), x.sum(1)), True),
        (lambda x: (x - x.mean(0)) / x.std(0), False),
        (lambda x: x.t(), False),
    ],
)
def test_large_references_are_lifted_in_slices(function: Any, liftable: bool, monkeypatch: Any) -> None:
    x = torch.randn(96, 40)
    whole = answer(Loaded(function), [x], seed=1)
    monkeypatch.setattr(lifting, "_WHOLE_BYTES", 20_000)
    monkeypatch.setattr(lifting, "_MOST_SHARE", 0.0)
    monkeypatch.setattr(lifting, "_free_bytes", lambda like: 1.0)
    sliced = answer(Loaded(function), [x], seed=1)
    assert all((each is not None) == liftable for each in sliced.exact)
    for one, other in zip(whole.exact, sliced.exact, strict=True):
        if liftable:
            assert one is not None and other is not None and torch.allclose(one, other, rtol=1e-12, atol=1e-14)


def test_probes_look_at_a_part_of_large_outputs(monkeypatch: Any) -> None:
    monkeypatch.setattr("evalcore.gpu.probes._MOST_ELEMENTS", 100)
    assert all(caught(lambda x: torch.softmax(x, 1)).values())
