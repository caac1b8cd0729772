"""The allocator of the embedded server: jemalloc where the machine has it, and nothing against the user's own word."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.servers.redis_server import RealServer
from toolonce.ops.server import server_binary
from toolonce.ops.server.embedded import transient_server
from toolonce.ops.server.server_binary import Maker, ServerBinary, find_binaries, find_jemalloc

LIBRARY = "usr/lib/x86_64-linux-gnu/libjemalloc.so.2"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine that has the library, or a file of its name: the loader passes over what it cannot load."""
    library = tmp_path / LIBRARY
    library.parent.mkdir(parents=True)
    library.write_bytes(b"no library")
    return tmp_path


def binary(allocator: str) -> ServerBinary:
    return ServerBinary(Path("valkey-server"), Maker("valkey", (9, 1, 2)), allocator)


def test_a_server_that_was_built_without_jemalloc_runs_with_that_of_the_machine(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    monkeypatch.setattr(server_binary, "find_jemalloc", lambda: find_jemalloc(root))
    assert binary("libc").environment()["LD_PRELOAD"] == str(root / LIBRARY)
    assert "LD_PRELOAD" not in binary("jemalloc").environment()
    if next(find_binaries()).allocator != "libc":
        pytest.skip("the server of this machine brings its own allocator")
    with transient_server() as server:
        said = "".join(path.read_text(errors="replace") for path in server.folder.glob("*.log"))
    assert f"'{root / LIBRARY}'" in said, "the loader says what it could not load"


def test_a_library_that_the_user_preloads_stands(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD", "/theirs.so")
    monkeypatch.setattr(server_binary, "find_jemalloc", lambda: find_jemalloc(root))
    assert binary("libc").environment()["LD_PRELOAD"] == "/theirs.so"


def test_a_machine_without_the_library_changes_nothing(tmp_path: Path) -> None:
    assert find_jemalloc(tmp_path) is None


def test_each_server_says_with_which_allocator_it_was_built(redis_server: RealServer) -> None:
    with redis_server.client() as client:
        runs_with = str(client.info("memory")["mem_allocator"])
    assert next(find_binaries()).allocator in runs_with.replace("-", " ").split()
