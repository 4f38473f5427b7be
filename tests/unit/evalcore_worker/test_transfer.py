"""Tensors through sealed memory files: what is handed over is what arrives, and nobody can pull it away."""

from __future__ import annotations

import os

import pytest

torch = pytest.importorskip("torch")

from evalcore.gpu.transfer import Exporter, Importer, TransferError, is_sealed, seal


def test_published_tensors_arrive_bit_for_bit() -> None:
    given = [
        torch.randn(5, 7).t(), torch.zeros(0), torch.tensor(True), torch.randn(3).bfloat16(),
        torch.randint(0, 9, (4,)), torch.randn(2, 2, dtype=torch.complex64),
    ]  # fmt: skip
    exported = Exporter("cpu").publish(given)
    assert len(exported.descriptors) == 1, "one file for all: a message carries only so many descriptors"
    raws = Importer("cpu").open("case", exported.handles, exported.descriptors)
    exported.close()
    for tensor, raw in zip(given, raws, strict=True):
        assert torch.equal(raw.clone().view(tensor.dtype).reshape(tensor.shape), tensor)


def test_storage_is_shared_both_ways() -> None:
    raws, exported = Exporter("cpu").storage([10, 0, 700])
    seen = Importer("cpu").open("case", exported.handles, exported.descriptors)
    seen[2].fill_(7)
    raws[0].fill_(3)
    assert bool((raws[2] == 7).all()) and bool((seen[0] == 3).all()) and seen[1].numel() == 0


def test_a_file_that_may_shrink_is_refused() -> None:
    loose = os.memfd_create("loose")
    os.ftruncate(loose, 4096)
    assert not is_sealed(loose, 4096)
    with pytest.raises(TransferError):
        Importer("cpu").open("case", [{"fd": 0, "offset": 0, "bytes": 8}], [loose])
    os.close(loose)


def test_a_sealed_file_cannot_be_cut() -> None:
    place = seal(4096)
    with pytest.raises(OSError):
        os.ftruncate(place, 0)
    assert is_sealed(place, 4096) and not is_sealed(place, 4097)
    with pytest.raises(TransferError):
        Importer("cpu").open("case", [{"fd": 0, "offset": 4000, "bytes": 97}], [place])
    os.close(place)
