"""New values at new addresses, for every kind of input."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from evalcore.gpu.ring import SHIFT_BYTES, SHIFTS, SLOTS, LocalRing, place, slots_for


def test_addresses_do_not_repeat_for_64_calls() -> None:
    places = {place(index, SLOTS) for index in range(SLOTS * SHIFTS)}
    assert len(places) == SLOTS * SHIFTS
    assert {offset % SHIFT_BYTES for _slot, offset in places} == {0}


@pytest.mark.parametrize(("set_bytes", "free", "slots"), [(0, 0, 4), (10, 1000, 4), (100, 1000, 2), (900, 1000, 1)])
def test_the_ring_shrinks_with_the_memory(set_bytes: int, free: int, slots: int) -> None:
    assert slots_for(set_bytes, free) == slots


def test_values_change_and_keep_their_distribution() -> None:
    x = torch.arange(60.0).reshape(6, 10)
    ring = LocalRing([x])
    first, second = ring.next(1)[0].clone(), ring.next(2)[0].clone()
    assert not torch.equal(first, second)
    assert torch.equal(first.flatten().sort()[0], x.flatten())
    assert torch.equal(second.flatten().sort()[0], x.flatten())


def test_the_same_index_gives_the_same_values_at_the_same_address() -> None:
    ring = LocalRing([torch.randn(5, 7)])
    one = ring.next(9)[0]
    value, address = one.clone(), one.data_ptr()
    one.zero_()
    again = ring.next(9)[0]
    assert torch.equal(again, value)
    assert again.data_ptr() == address


def test_neighbouring_calls_have_other_addresses() -> None:
    ring = LocalRing([torch.randn(5, 7)])
    addresses = [ring.next(index)[0].data_ptr() for index in range(SLOTS * SHIFTS)]
    assert len(set(addresses)) == len(addresses)
    assert all(address % 16 == 0 for address in addresses)


def test_integers_scalars_and_strides_stay() -> None:
    offsets, transposed = torch.tensor([0, 3, 9]), torch.randn(4, 6).half().t()
    values = LocalRing([offsets, 3, None, transposed, torch.empty(0, 5), torch.randn(())]).next(5)
    assert torch.equal(values[0], offsets)
    assert values[1:3] == [3, None]
    assert values[3].stride() == transposed.stride()
    assert values[4].shape == (0, 5)
    assert values[5].shape == ()


def test_a_tensor_with_gradient_comes_as_a_leaf_with_gradient() -> None:
    (x,) = LocalRing([torch.randn(3, requires_grad=True)]).next(0)
    assert x.requires_grad
    assert x.is_leaf
    (x * x).sum().backward()
    assert torch.allclose(x.grad, 2 * x)


def test_no_tensor_is_a_view() -> None:
    """torch.compile looks at the base of a view, and would compile anew for each address."""
    assert not LocalRing([torch.randn(4, 4)]).next(7)[0]._is_view()


def test_a_refill_of_ones_own() -> None:
    ring = LocalRing([torch.zeros(3)], refill=lambda index, position, view: view.fill_(index + position))
    assert ring.next(4)[0].tolist() == [4.0, 4.0, 4.0]
