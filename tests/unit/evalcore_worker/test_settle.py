"""A child's own folder is where its temporary files go, whatever the loop looked up before the fork."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from evalcore.gpu.sandbox import Policy
from evalcore.worker.settle import Settling, confine


def test_the_loops_folder_for_temporary_files_is_forgotten(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    tempfile.gettempdir()  # the loop has looked it up: Python keeps the answer in every fork
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            confine(Settling(device="cpu", policy=Policy(scratch=str(tmp_path))))
            with tempfile.NamedTemporaryFile() as file:  # raises PermissionError in the loop's folder
                os.write(writer, os.path.dirname(file.name).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    told = os.read(reader, 4096).decode()
    os.close(reader)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert Path(told).is_relative_to(tmp_path)
