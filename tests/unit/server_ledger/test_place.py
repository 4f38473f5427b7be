"""Where the ledger lies: never through a link, never on a network file system."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from server.ledger import place
from server.ledger.store import Ledger, LedgerUnusable
from server.ledger.verify import verify_folder
from tests.support.ledgers import KEY, filled, judged, opened

MOUNTS = """22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
40 22 0:40 / {point} rw,relatime shared:9 - {kind} server:/export rw,vers=4.2{options}
41 22 0:41 / /elsewhere rw - lustre fs rw
"""


@pytest.mark.parametrize(
    ("kind", "options", "falls_back"),
    [("nfs4", "", True), ("lustre", "", True), ("fuse.sshfs", "", True), ("9p", ",aname=drvfs", True),
     ("9p", "", False), ("ext4", "", False), ("overlay", "", False), ("tmpfs", "", False)],
)  # fmt: skip
def test_network_file_systems_fall_back_to_the_state_folder(
    kind: str, options: str, falls_back: bool, tmp_path: Path
) -> None:
    workspace = tmp_path / "my work"
    workspace.mkdir()
    point = str(tmp_path).replace(" ", "\\040") if kind == "ext4" else str(workspace).replace(" ", "\\040")
    chosen = place.choose(workspace, tmp_path / "state", mounts=MOUNTS.format(point=point, kind=kind, options=options))
    assert chosen.folder.is_relative_to(tmp_path / "state") == falls_back
    assert (chosen.note is not None) == falls_back
    if falls_back and kind != "9p":
        assert kind in (chosen.note or "")


def test_two_workspaces_of_one_name_do_not_share_a_folder(tmp_path: Path) -> None:
    ids = {place.workspace_id(tmp_path / name / "kernels") for name in ("a", "b")}
    assert len(ids) == 2 and all(name.startswith("kernels-") for name in ids)


@pytest.mark.parametrize("name", ["", "ledger.db", "benchmark.csv", "solutions.jsonl", "ledger.db-wal", "ledger.lock"])
def test_a_link_is_not_followed(name: str, tmp_path: Path) -> None:
    target = tmp_path / "precious"
    folder = tmp_path / "workspace" / ".odyssey"
    if name:
        target.write_text("precious")
        folder.mkdir(parents=True)
        (folder / name).symlink_to(target)
    else:
        target.mkdir()
        folder.parent.mkdir()
        folder.symlink_to(target)
    with opened(tmp_path) as ledger:
        ledger.append(judged("a"), text="a")
        assert ledger.place.folder.is_relative_to(tmp_path / "state")
        assert "symbolic link" in ledger.notes[0]
    if name:
        assert target.read_text() == "precious"
    else:
        assert os.listdir(target) == []


def test_a_link_put_there_later_stops_the_exports_and_says_so(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("precious")
    with filled(tmp_path, 1) as ledger:
        (ledger.place.folder / "benchmark.csv").unlink()
        (ledger.place.folder / "benchmark.csv").symlink_to(target)
        assert ledger.append(judged("a"), text="a") == 2, "a verdict is recorded all the same"
        assert any("not in step" in note for note in ledger.notes)
    assert target.read_text() == "precious"
    report = verify_folder(ledger.place.folder, KEY, lambda _: None)
    assert "symbolic link" in report.faults[0].message


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_a_read_only_workspace(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    workspace.chmod(0o500)
    try:
        with opened(tmp_path) as ledger:
            assert "cannot be made" in ledger.notes[0]
    finally:
        workspace.chmod(0o700)


def test_no_place_at_all_is_an_error_with_both_reasons(tmp_path: Path) -> None:
    for name in ("workspace", "state"):
        (tmp_path / name).write_text("a file")
    with pytest.raises(LedgerUnusable):
        Ledger.open(tmp_path / "workspace", state_dir=tmp_path / "state", key=KEY)


@pytest.mark.parametrize("name", ["with space", "per%20cent", "üñí漢", "quo'te\"s", "a?b#c"])
def test_odd_folder_names(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    with filled(tmp_path / name, 2) as ledger:
        assert ledger.verify().state == "intact"
        assert verify_folder(ledger.place.folder, KEY, lambda _: None).ok


def test_git_sees_the_evidence_and_not_the_side_files(tmp_path: Path) -> None:
    with filled(tmp_path, 2) as ledger:
        subprocess.run(["git", "init", "-q", str(tmp_path / "workspace")], check=True)
        status = ["git", "-C", str(tmp_path / "workspace"), "status", "--porcelain", "-uall"]
        shown = subprocess.run(status, check=True, capture_output=True, text=True).stdout
        assert ledger.last_seq() == 2
    assert "ledger.db\n" in shown and "benchmark.csv" in shown and "wal" not in shown and "lock" not in shown
