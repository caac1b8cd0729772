"""A data folder per test, and no server left in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from toolonce.ops import server_process
from toolonce.ops.data_folder import DataFolder


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    """A folder that does not exist yet. Whatever server serves it at the end is killed."""
    path = tmp_path / "data"
    yield path
    folder = DataFolder(path.resolve())
    if isinstance(answer := server_process.ask(folder), server_process.Answer):
        server_process.kill(answer.process_id)
    if socket := folder.recorded_socket():
        socket.unlink(missing_ok=True)
