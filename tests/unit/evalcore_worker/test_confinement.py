"""Environment, sandbox, memory files, lock, scratch: each layer by itself, in forks of this process."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from evalcore.gpu import landlock, sandbox, scratch
from evalcore.gpu.lock import DeviceLock
from evalcore.worker.environment import case_environment, clean, loop_environment
from evalcore.worker.processes import descendants, table


def in_fork(work: Callable[[], object]) -> object:
    """Run `work` in a fork and bring its plain result back."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        data = pipe.read()
    os.waitpid(pid, 0)
    return json.loads(data)


def attempt(deed: Callable[[], object]) -> str:
    try:
        deed()
    except OSError as fault:
        return type(fault).__name__
    return "allowed"


def test_secrets_and_strangers_are_left_out() -> None:
    given = {
        "PATH": "/bin", "HOME": "/home/a", "LC_ALL": "C", "CUDA_VISIBLE_DEVICES": "0", "TRITON_ALWAYS_COMPILE": "1",
        "OPENAI_API_KEY": "x", "TORCH_HUB_TOKEN": "x", "CUDA_SECRET": "x", "AWS_PROFILE": "x", "SSH_AUTH_SOCK": "x",
        "MY_PASSWORD": "x", "EDITOR": "x",
    }  # fmt: skip
    assert set(clean(given)) == {"PATH", "HOME", "LC_ALL", "CUDA_VISIBLE_DEVICES", "TRITON_ALWAYS_COMPILE"}


def test_a_loop_has_one_thread_and_its_flavour() -> None:
    interpret = loop_environment({"PATH": "/bin", "TRITON_INTERPRET": "0"}, "interpret")
    assert interpret["TRITON_INTERPRET"] == "1" and interpret["OPENBLAS_NUM_THREADS"] == "1"
    assert "TRITON_INTERPRET" not in loop_environment({"TRITON_INTERPRET": "1"}, "compile")


def test_a_case_lives_in_its_scratch(tmp_path: Path) -> None:
    made = case_environment({"HOME": "/home/a", "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}, str(tmp_path))
    assert made["HOME"].startswith(str(tmp_path)) and made["TRITON_CACHE_DIR"].startswith(str(tmp_path))
    assert "PYTORCH_CUDA_ALLOC_CONF" not in made


needs_landlock = pytest.mark.skipif(landlock.version() < 1, reason="this kernel has no Landlock")


@needs_landlock
def test_the_sandbox_confines(tmp_path: Path) -> None:
    project, other, inside = tmp_path / "project", tmp_path / "other", tmp_path / "scratch"
    for folder in (project, other, inside, project / ".git"):
        folder.mkdir()
    for place in (project / "a.py", project / ".env", project / ".git" / "config", other / "b.py"):
        place.write_text("text")
    policy = sandbox.Policy(scratch=str(inside), readable=(str(project),))

    def look() -> dict[str, object]:
        held = sandbox.apply(policy)
        return {
            "held": held,
            "project": attempt(lambda: (project / "a.py").read_text()),
            "listing": attempt(lambda: os.listdir(project)),
            "env": attempt(lambda: (project / ".env").read_text()),
            "git": attempt(lambda: (project / ".git" / "config").read_text()),
            "other": attempt(lambda: (other / "b.py").read_text()),
            "write project": attempt(lambda: (project / "new").write_text("x")),
            "delete": attempt(lambda: (project / "a.py").unlink()),
            "write scratch": attempt(lambda: (inside / "new").write_text("x")),
            "python": attempt(lambda: Path(json.__file__).read_text()),
            "parent": attempt(lambda: Path(f"/proc/{os.getppid()}/environ").read_bytes()),
            "network": attempt(lambda: socket.create_connection(("127.0.0.1", 9), timeout=2)),
        }

    seen = in_fork(look)
    assert isinstance(seen, dict)
    allowed = {name for name, result in seen.items() if result == "allowed"}
    assert allowed == {"project", "listing", "write scratch", "python"}
    assert {"rlimits", "no-new-privs", "landlock"} <= set(seen["held"])


@needs_landlock
@pytest.mark.skipif(landlock.version() < 6, reason="signals can be scoped from Landlock 6 on")
def test_the_sandbox_lets_nobody_be_killed(tmp_path: Path) -> None:
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        (tmp_path / "s").mkdir()

        def shoot() -> str:
            sandbox.apply(sandbox.Policy(scratch=str(tmp_path / "s")))
            return attempt(lambda: os.kill(sleeper.pid, 9))

        assert in_fork(shoot) == "PermissionError"
        assert sleeper.poll() is None
    finally:
        sleeper.kill()
        sleeper.wait()


def test_layers_that_are_not_wanted_are_left_out(tmp_path: Path) -> None:
    policy = sandbox.Policy(scratch=str(tmp_path), layers=("rlimits",))
    assert in_fork(lambda: sandbox.apply(policy)) == ["rlimits"]


def test_a_home_is_opened_file_by_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    (home / "secret-project").mkdir(parents=True)
    (home / "kernel.py").write_text("")
    monkeypatch.setenv("HOME", str(home))
    assert sandbox.too_wide(str(home)) and sandbox.too_wide(str(tmp_path)) and not sandbox.too_wide(str(home / "x"))
    opened = {grant.path for grant in sandbox.project_grants(str(home))}
    assert opened == {str(home / "kernel.py")}


def test_files_that_a_confined_child_cannot_read_are_known(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    (tmp_path / "b.py").write_text("1")
    before = sandbox.entries([str(tmp_path)])
    assert sandbox.unreadable_since(before, [str(tmp_path)]) == set()
    (tmp_path / "a.py").write_text("changed in place")
    (tmp_path / "new").write_text("2")
    os.replace(tmp_path / "new", tmp_path / "b.py")
    (tmp_path / "c.py").write_text("3")
    assert sandbox.unreadable_since(before, [str(tmp_path)]) == {str(tmp_path / "b.py"), str(tmp_path / "c.py")}


def test_one_measures_many_may_open(tmp_path: Path) -> None:
    one, two, three = (DeviceLock("GPU-1", folder=str(tmp_path)) for _ in range(3))
    assert one.try_shared() and two.try_shared()
    assert not three.try_alone()
    one.release()
    two.release()
    assert three.try_alone() and three.holder() == os.getpid()
    assert not one.try_shared() and not one.try_alone()
    assert DeviceLock("GPU-2", folder=str(tmp_path)).try_alone()
    three.release()
    assert one.try_alone()
    one.release()


def test_a_lock_ends_with_its_owner(tmp_path: Path) -> None:
    def take_and_die() -> bool:
        return DeviceLock("GPU-1", folder=str(tmp_path)).try_alone()

    assert in_fork(take_and_die) is True
    lock = DeviceLock("GPU-1", folder=str(tmp_path))
    assert lock.try_alone()
    lock.release()


def test_scratch_is_private_and_swept(tmp_path: Path) -> None:
    dead = tmp_path / "loop-999999999"
    (dead / "case-1").mkdir(parents=True)
    place = Path(scratch.make_loop_folder(str(tmp_path)))
    assert not dead.exists(), "what a dead loop left is swept"
    assert place.stat().st_mode & 0o077 == 0
    child = Path(scratch.make_child_folder(str(place), "case-1"))
    assert (child / "home" / ".cache").is_dir()
    (child / "link").symlink_to(tmp_path)
    (tmp_path / "outside").write_text("x")
    assert scratch.sweep(str(child)) and not child.exists() and (tmp_path / "outside").exists()


def test_reading_inside_refuses_links_and_ways_out(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"fine")
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    read = lambda name, most=10: scratch.read_inside(str(tmp_path), name, most_bytes=most)  # noqa: E731
    assert read("plain") == b"fine"
    assert read("plain", 3) is None
    assert read("link") is None and read("pipe") is None and read("../plain") is None and read("none") is None


def test_descendants_are_found() -> None:
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    with contextlib.ExitStack() as stack:
        stack.callback(sleeper.wait)
        stack.callback(sleeper.kill)
        assert sleeper.pid in descendants([os.getpid()])
        assert table()[sleeper.pid][0] == os.getpid()
