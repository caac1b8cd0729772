"""The embedded server's life: started once, shared, killed, started again with its data, ended by its last user."""

from __future__ import annotations

import os
import shutil
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.support.processes.processes import Child
from tests.support.store.live_store import LiveScene, LiveStore
from tests.support.wait import wait_until
from toolonce.ops.errors import ServerNotStarted
from toolonce.ops.server import embedded
from toolonce.ops.server.data_folder import SOCKET_PATH_BYTES, DataFolder
from toolonce.ops.server.embedded import EmbeddedServer, ensure_server
from toolonce.store.connections.project import user_folder

USE = """
import sys
from pathlib import Path
from toolonce.ops.server.embedded import ensure_server
print("ready", flush=True)
sys.stdin.readline()
server = ensure_server(Path(sys.argv[1]))
print("server", server.process_id, flush=True)
sys.stdin.readline()
server.stop()
"""

FORK = """
import os, sys
from pathlib import Path
from toolonce.ops.server.embedded import ensure_server
server = ensure_server(Path(sys.argv[1]))
if (child := os.fork()) == 0:
    server.stop()
    os._exit(0)
os.waitpid(child, 0)
print("alive", server.is_alive(), flush=True)
server.stop()
"""


def client_of(server: EmbeddedServer) -> redis.Redis:
    # A busy machine takes its time; what is claimed here is not how fast it is.
    return redis.Redis.from_url(server.url, decode_responses=True, retry=Retry(NoBackoff(), 0), socket_timeout=60)


def kill_server(server: EmbeddedServer) -> None:
    os.kill(server.process_id, signal.SIGKILL)
    wait_until(lambda: not server.is_alive(), description="the killed server is gone")


def test_it_keeps_everything_and_is_open_to_nobody_else(data_dir: Path) -> None:
    with ensure_server(data_dir) as server, client_of(server) as client:
        asked = (
            "appendonly", "appendfsync", "save", "maxmemory-policy", "port", "no-appendfsync-on-rewrite",
            "hash-max-listpack-value",
        )  # fmt: skip
        config = {name: client.config_get(name)[name] for name in asked}
        socket = Path(server.url.removeprefix("unix://"))

        assert config == {
            "appendonly": "yes",
            "appendfsync": "always",
            "save": "",
            "maxmemory-policy": "noeviction",
            "port": "0",
            "no-appendfsync-on-rewrite": "no",
            "hash-max-listpack-value": "256",
        }
        assert data_dir.stat().st_mode & 0o777 == 0o700
        assert socket.parent.stat().st_mode & 0o777 == 0o700
        assert len(os.fsencode(socket)) <= SOCKET_PATH_BYTES
        assert os.getsid(server.process_id) == server.process_id


def test_a_killed_server_comes_back_with_its_data_at_the_same_address(data_dir: Path) -> None:
    with ensure_server(data_dir) as server, client_of(server) as client:
        url, first = server.url, server.process_id
        for number in range(100):
            client.set(f"key-{number}", number)
        kill_server(server)
        server.revive()

        assert client.dbsize() == 100
        assert server.url == url
        assert server.process_id != first


def test_a_server_that_answers_is_not_started_again(data_dir: Path) -> None:
    with ensure_server(data_dir) as server:
        first = server.process_id
        server.revive()

        assert server.process_id == first


def test_data_survives_an_orderly_end(data_dir: Path) -> None:
    with ensure_server(data_dir) as server, client_of(server) as client:
        client.set("key", "value")
    assert not server.is_alive()
    with ensure_server(data_dir) as server, client_of(server) as client:
        assert client.get("key") == "value"


def test_the_second_user_joins_and_the_last_one_ends_it(data_dir: Path) -> None:
    first, second = ensure_server(data_dir), ensure_server(data_dir)
    assert (first.owned, second.owned) == (True, False)
    assert first.process_id == second.process_id

    first.stop()
    assert second.is_alive()
    second.stop()
    second.stop()
    assert not second.is_alive()


def test_processes_that_start_it_at_once_end_up_with_one_server(data_dir: Path) -> None:
    with ExitStack() as stack:
        users = [stack.enter_context(Child.python("-c", USE, str(data_dir))) for _ in range(5)]
        for user in users:
            user.wait_for_line("ready")
        for user in users:
            user.send_line("go")
        servers = {user.wait_for_line(r"server (\d+)")[1] for user in users}
        for user in users:
            user.send_line("leave")
        ends = [user.wait() for user in users]

    assert len(servers) == 1
    assert ends == [0] * 5
    assert DataFolder(data_dir).server_lock().take_alone(), "the last user has ended the server"


def test_the_server_holds_its_folder_after_its_starter_was_killed(data_dir: Path) -> None:
    with Child.python("-c", USE, str(data_dir)) as starter:
        starter.send_line("go")
        started = int(starter.wait_for_line(r"server (\d+)")[1])
        starter.kill9()
    assert not DataFolder(data_dir).server_lock().take_alone()

    with ensure_server(data_dir) as server:
        assert (server.process_id, server.owned) == (started, False)
    assert DataFolder(data_dir).server_lock().take_alone()


def test_a_forked_child_cannot_end_its_parents_server(data_dir: Path) -> None:
    with Child.python("-c", FORK, str(data_dir)) as parent:
        assert parent.wait_for_line(r"alive (\w+)")[1] == "True"
        assert parent.wait() == 0


def test_a_copy_of_the_folder_gets_its_own_server(data_dir: Path, tmp_path: Path) -> None:
    with ensure_server(data_dir) as original, client_of(original) as client:
        client.set("key", "value")
        shutil.copytree(data_dir, tmp_path / "copy")
        with ensure_server(tmp_path / "copy") as copy, client_of(copy) as copied:
            assert copy.process_id != original.process_id
            assert copied.get("key") == "value"

        assert original.is_alive()


def test_a_large_data_set_is_loaded_before_it_is_handed_out(data_dir: Path) -> None:
    with ensure_server(data_dir) as server, client_of(server) as client:
        client.eval("for i = 1, 200000 do redis.call('SET', 'key:' .. i, i) end", 0)
        kill_server(server)
        server.revive()

        assert client.dbsize() == 200_000


def test_a_torn_last_write_does_not_keep_it_from_starting(data_dir: Path) -> None:
    with ensure_server(data_dir) as server, client_of(server) as client:
        client.set("whole", 1)
        client.set("torn", 2)
        kill_server(server)
        log = max((data_dir / "appendonlydir").glob("*.incr.aof"))
        os.truncate(log, log.stat().st_size - 3)
        server.revive()

        assert client.keys() == ["whole"]


def test_a_hanging_server_is_killed_by_its_last_user(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "_ENDING_SECONDS", 0.05)
    server = ensure_server(data_dir)
    os.kill(server.process_id, signal.SIGSTOP)
    server.stop()

    wait_until(DataFolder(data_dir).server_lock().take_alone, description="the hanging server is gone")


def test_a_hanging_server_is_reported_and_left_to_its_users(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ensure_server(data_dir) as server:
        os.kill(server.process_id, signal.SIGSTOP)
        monkeypatch.setattr(embedded, "_PATIENCE_SECONDS", 0.05)
        with pytest.raises(ServerNotStarted, match=r"does not answer; .*server\.pid"):
            ensure_server(data_dir)
        os.kill(server.process_id, signal.SIGCONT)

        assert server.is_alive()


def test_without_a_folder_the_users_own_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)

    assert user_folder().is_relative_to(tmp_path)
    assert "toolonce" in user_folder().parts


def test_the_record_of_a_settled_call_stays_in_the_compact_form(data_dir: Path) -> None:
    """It holds names and keys of more than the 64 bytes that a server takes for small by itself."""
    with ensure_server(data_dir) as server, ExitStack() as stack:
        scene = LiveScene(LiveStore(server.url, "toolonce"))
        stack.callback(scene.live.close)
        record = scene.space.record(scene.succeeded("a"))

        assert scene.live.redis.object("encoding", record) == "listpack"
