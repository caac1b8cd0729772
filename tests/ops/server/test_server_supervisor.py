"""An embedded server that ends under a running command is back before its clients give up."""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
from pathlib import Path

import pytest
import redis

from tests.support.wait import wait_until
from toolonce.ops.server import server_process
from toolonce.ops.server.embedded import EmbeddedServer, ensure_server
from toolonce.ops.server.server_supervisor import kept_up


def kill(server: EmbeddedServer) -> int:
    killed = server.process_id
    os.kill(killed, signal.SIGKILL)
    return killed


def test_a_killed_server_is_started_again_with_its_data(data_dir: Path, caplog: pytest.LogCaptureFixture) -> None:
    with ensure_server(data_dir) as server, kept_up(server), redis.Redis.from_url(server.url) as client:
        client.set("key", "value")
        killed = kill(server)
        wait_until(lambda: server.process_id != killed and server.is_alive(), description="it is up again")

        assert client.get("key") == b"value"
        wait_until(lambda: "it is up again with its data" in caplog.text, description="it is said")


def test_a_server_that_hangs_for_a_while_is_not_said_to_have_ended(
    data_dir: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_process, "_ANSWER_SECONDS", 0.05)
    with ensure_server(data_dir) as server:
        hanging, noticed, revive = server.process_id, threading.Event(), server.revive

        def revive_and_tell() -> None:
            noticed.set()
            revive()

        monkeypatch.setattr(server, "revive", revive_and_tell)
        with kept_up(server):
            os.kill(hanging, signal.SIGSTOP)
            assert noticed.wait(20)
            os.kill(hanging, signal.SIGCONT)
            wait_until(lambda: "did not answer for a while" in caplog.text, description="it is said")

        assert server.process_id == hanging
    assert "ended" not in caplog.text


def test_a_server_that_cannot_start_is_named_once_and_tried_again(
    data_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with ensure_server(data_dir) as server:
        note = data_dir / "server.json"
        ours = note.read_text()
        note.write_text(json.dumps({"family": "redis", "version": "99.0.0"}))
        with kept_up(server):
            killed = kill(server)
            wait_until(lambda: "written by redis 99.0.0" in caplog.text, description="the cause is logged")
            note.write_text(ours)
            wait_until(lambda: server.process_id != killed and server.is_alive(), description="it is up again")

    assert len([record for record in caplog.records if record.levelno == logging.ERROR]) == 1


def test_it_is_left_alone_after_the_block(data_dir: Path) -> None:
    with ensure_server(data_dir) as server:
        with kept_up(server):
            assert server.is_alive()
        kill(server)
        wait_until(lambda: not server.is_alive(), description="the killed server is gone")

    assert not server.is_alive()
