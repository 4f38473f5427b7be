"""The host, interpreters, projects, choices, and what lies on the disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evalcore.jobs import Refusal
from server.choices import Choices
from server.host import Host
from server.interpreters import Interpreter, candidates, choose
from server.project import MAX_FILE_BYTES, Project, glob_folders, language_of, nearest_root, read_text
from tests.support.fake_python import fake_python


def test_state_lies_in_the_persons_own_folder(tmp_path):
    host = Host({"XDG_STATE_HOME": str(tmp_path / "x")})
    assert host.state_dir() == tmp_path / "x" / "odyssey" and host.state_dir().stat().st_mode & 0o077 == 0
    assert Host({"HOME": str(tmp_path)}).state_dir() == tmp_path / ".local" / "state" / "odyssey"


@pytest.mark.skipif(os.name != "posix", reason="ids of users")
def test_a_home_that_cannot_be_written_has_a_private_stand_in(tmp_path):
    (tmp_path / "home").write_text("a file, not a folder")
    place = Host({"HOME": str(tmp_path / "home")}).state_dir()
    assert place.is_dir() and place.lstat().st_uid == os.getuid()


def test_scratch_of_dead_servers_is_swept_and_of_living_ones_is_not(tmp_path):
    host = Host({"XDG_STATE_HOME": str(tmp_path)})
    living = host.scratch_dir()
    dead = living.parent / "odyssey-999999999-x"
    dead.mkdir(exist_ok=True)
    host.sweep_scratch()
    assert living.exists() and not dead.exists()
    assert (living / "ceilings").is_symlink()
    (living / "ceilings").unlink()
    living.rmdir()


async def test_the_interpreter_is_chosen_in_order(tmp_path):
    host = Host({"XDG_STATE_HOME": str(tmp_path), "VIRTUAL_ENV": str(tmp_path / "venv"), "PATH": os.environ["PATH"]})
    assert [origin for _, origin in candidates(host, "", "/editor/python")] == [
        "the editor",
        "VIRTUAL_ENV",
        "the server",
    ]
    assert [origin for _, origin in candidates(host, "sh", "/editor/python")] == ["odyssey.python"]
    assert candidates(host, "sh", "")[0][0].endswith("/sh")
    scripted = fake_python(tmp_path)
    found = await choose(host, "", scripted)
    assert isinstance(found, Interpreter) and (found.path, found.origin, found.torch) == (scripted, "the editor", "9.9")
    refused = await choose(host, "/bin/false", "")
    assert isinstance(refused, Refusal) and "no working Python" in refused.message
    missing = await choose(host, "/nowhere/python", "")
    assert isinstance(missing, Refusal) and "cannot be started" in missing.message


def test_roots(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "odyssey.toml").touch()
    file = str(tmp_path / "a" / "b" / "k.py")
    assert nearest_root(file) == tmp_path / "a"
    project = Project([str(tmp_path), str(tmp_path / "a" / "b")])
    assert project.root_of(file) == tmp_path / "a" / "b"
    assert Project([]).root_of(file) == tmp_path / "a"
    (tmp_path / "a" / "odyssey.toml").unlink()
    (tmp_path / ".odyssey").mkdir()
    assert nearest_root(file) == tmp_path
    tmp_path.chmod(0o777)
    assert nearest_root(file) == tmp_path / "a" / "b"


@pytest.mark.parametrize(
    ("glob", "path", "matches"),
    [
        ("kernels/*.py", "kernels/a.py", True),
        ("**/*.py", "a.py", True),
        ("**/*.py", "x/y/a.py", True),
        ("./kernels/**/*.cu", "kernels/x/a.cu", True),
        ("kernels/*.py", "other/a.py", False),
        ("*.cu", "a.py", False),
    ],
)
def test_globs(tmp_path, glob, path, matches):
    assert Project([str(tmp_path)]).watched(str(tmp_path / path), [glob]) is matches


def test_the_fixed_part_of_a_glob_is_watched(tmp_path):
    globs = ["kernels/**/*.py", "**/*.cu", "kernels/x/y.py"]
    assert glob_folders(tmp_path, globs) == (tmp_path / "kernels", tmp_path, tmp_path / "kernels" / "x")


def test_texts_are_read_as_an_editor_shows_them(tmp_path):
    place = tmp_path / "k.py"
    place.write_bytes(b"\xef\xbb\xbfa\r\nb\xff")
    found = read_text(str(place))
    assert found is not None and found.text == "a\r\nb\ufffd" and not found.valid
    place.write_bytes(b"x" * (MAX_FILE_BYTES + 1))
    assert read_text(str(place)) is None and read_text(str(tmp_path)) is None and read_text("/dev/zero") is None
    os.symlink(tmp_path / "loop", tmp_path / "loop")
    assert read_text(str(tmp_path / "loop")) is None
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    assert read_text(str(fifo)) is None


def test_languages():
    assert language_of("/a/b.PY") == "python" and language_of("/a.cuh") == "cuda"
    assert language_of("untitled:1", "python") == "python" and language_of("/a.md", "markdown") is None


def test_choices_survive_and_a_broken_file_is_no_choice(tmp_path):
    place = tmp_path / "shapes.json"
    Choices(place).pick("/a.py", "k", "4096")
    assert Choices(place).case("/a.py", "k") == "4096"
    Choices(place).pick("/a.py", "k", None)
    assert Choices(place).case("/a.py", "k") is None
    place.write_text("{broken")
    assert Choices(place).case("/a.py", "k") is None
    Choices(Path("/nowhere/x.json")).pick("/a.py", "k", "1")
