"""A data folder per test, and no server left in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes.command_line import CommandLine
from tests.support.servers.redis_server import RealServer
from tests.support.store.live_store import LiveScene, LiveStore
from toolonce.ops.server import server_process
from toolonce.ops.server.data_folder import DataFolder


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    """A folder that does not exist yet. Whatever server serves it at the end is killed."""
    path = tmp_path / "data"
    yield path
    folder = DataFolder(path.resolve())
    if isinstance(answer := server_process.ask(folder), server_process.ServerIdentity):
        server_process.kill(answer.process_id)
    if socket := folder.recorded_socket():
        socket.unlink(missing_ok=True)


@pytest.fixture
def scene(redis_server: RealServer, namespace: str) -> Iterator[LiveScene]:
    """A namespace of the session's server, to be filled by the test and looked at by commands."""
    store = LiveStore(redis_server.url, namespace)
    yield LiveScene(store)
    store.close()


@pytest.fixture
def toolonce(
    redis_server: RealServer, namespace: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> CommandLine:
    """The command line on the same namespace, as a known operator."""
    monkeypatch.setenv("TOOLONCE_ACTOR", "alice")
    return CommandLine(capsys, ["--redis", redis_server.url, "--namespace", namespace])
