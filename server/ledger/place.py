"""Owns where a workspace's ledger lies: its own .odyssey folder, or the state folder where that cannot be used.

Never follows a symlink out of a workspace and never opens a database; it only decides and says why.
"""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

FOLDER = ".odyssey"
DATABASE = "ledger.db"
BENCHMARK = "benchmark.csv"
SOLUTIONS = "solutions.jsonl"
LOCK = "ledger.lock"

NO_WAL = frozenset((
    "nfs", "nfs4", "lustre", "cifs", "smb", "smb3", "smbfs", "fuse.sshfs", "gpfs", "beegfs", "ceph", "fuse.ceph", "afs",
    "glusterfs", "fuse.glusterfs", "orangefs", "pvfs2", "panfs", "davfs", "fuse.rclone", "fuse.s3fs", "fuse.gcsfuse",
    "vboxsf",
))  # fmt: skip
"""File systems on which several machines may write: SQLite's shared-memory index (WAL) does not work across them."""

IGNORED = "ledger.db-wal\nledger.db-shm\nledger.lock\n"
"""What git should never see of the folder. The ledger itself may be committed: it is evidence for others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The folder that holds ledger.db, benchmark.csv and solutions.jsonl."""

    folder: Path
    note: str | None = None
    """Why it is not the workspace's own folder, and what would change that; None where it is."""

    @property
    def database(self) -> Path:
        """The SQLite file."""
        return self.folder / DATABASE


def workspace_id(workspace: Path) -> str:
    """A name for a workspace in the state folder: its last folder name and a hash of its whole path."""
    digest = hashlib.sha256(os.fsencode(str(workspace))).hexdigest()[:16]
    readable = "".join(c if c.isalnum() or c in "-_" else "-" for c in workspace.name)[:32]
    return f"{readable}-{digest}"


def own_place(workspace: Path) -> Place:
    """The workspace's own .odyssey folder."""
    return Place(folder=workspace / FOLDER)


def state_place(workspace: Path, state_dir: Path, why: str) -> Place:
    """The stand-in for a workspace whose own folder cannot be used."""
    folder = state_dir / "ledgers" / workspace_id(workspace)
    return Place(folder=folder, note=f"{why}; this workspace's ledger lies in {folder}")


def choose(workspace: Path, state_dir: Path, *, mounts: str | None = None) -> Place:
    """Decide. `mounts` is the text of /proc/self/mountinfo (given by tests)."""
    own = own_place(workspace)
    obstacle = link_in_the_way(own.folder)
    if obstacle is not None:
        return state_place(
            workspace, state_dir, f"{obstacle} is a symbolic link (or no regular file) and is not followed"
        )
    kind = file_system(workspace, mounts)
    if kind in NO_WAL:
        return state_place(workspace, state_dir, f"the folder lies on {kind}, where SQLite's WAL does not work")
    try:
        own.folder.mkdir(exist_ok=True)
        writable = os.access(own.folder, os.W_OK | os.X_OK)
    except OSError as problem:
        return state_place(workspace, state_dir, f"{own.folder} cannot be made ({problem.strerror})")
    if not writable:
        return state_place(workspace, state_dir, f"{own.folder} is not writable")
    return own


def link_in_the_way(folder: Path) -> Path | None:
    """The first of our paths that exists and is not what it must be (a real folder, real files), or None."""
    names = (DATABASE, DATABASE + "-wal", DATABASE + "-shm", DATABASE + "-journal", BENCHMARK, SOLUTIONS, LOCK)
    try:
        mode = folder.lstat().st_mode
    except OSError:
        return None
    if not stat.S_ISDIR(mode):
        return folder
    for name in names:
        path = folder / name
        try:
            mode = path.lstat().st_mode
        except OSError:
            continue
        if not stat.S_ISREG(mode):
            return path
    return None


def file_system(path: Path, mounts: str | None = None) -> str | None:
    """Type of the file system under `path`, e.g. 'ext4', 'nfs4'; None where the system does not say."""
    if mounts is None:
        try:
            mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
    target = os.path.realpath(path)
    best, kind = "", None
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        fields, kinds = left.split(" "), right.split(" ")
        if len(fields) < 5 or not kinds[0]:
            continue
        point = fields[4].replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
        inside = target == point or target.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, kinds[0]
            if kind == "9p" and "aname=drvfs" in right:
                kind = "vboxsf"  # a Windows drive under WSL 2: no shared memory either
    return kind


def leave_gitignore(folder: Path) -> None:
    """Keep SQLite's side files out of git; a file that is there already stays as it is."""
    try:
        with (folder / ".gitignore").open("x", encoding="utf-8") as out:
            out.write(IGNORED)
    except OSError:
        pass
