"""Commands that are told to end: by a supervisor, by Ctrl-C, by a terminal that is closed."""

from __future__ import annotations

import shlex
import signal
import sys
from pathlib import Path

import pytest
import redis

from tests.support.processes.processes import Child
from tests.support.wait import wait_until
from toolonce.ops.server import server_process
from toolonce.ops.server.data_folder import DataFolder
from toolonce.ops.server.embedded import EmbeddedServer, ensure_server


def served(data_dir: Path) -> DataFolder:
    return DataFolder((data_dir / "toolonce" / "server").resolve())


def wait_until_joined(server: EmbeddedServer) -> None:
    """Until a command stays connected beside us."""
    with redis.Redis.from_url(server.url) as client:
        wait_until(lambda: any(row["cmd"] == "xread" for row in client.client_list()), 20, "a command has joined")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_the_embedded_server_ends_with_the_command_that_was_its_last_user(data_dir: Path, number: int) -> None:
    env = {"XDG_DATA_HOME": str(data_dir), "TOOLONCE_REDIS_URL": ""}
    with (
        ensure_server(served(data_dir).path) as server,
        Child.python("-m", "toolonce.ops", "tail", env=env, cwd=data_dir) as child,
    ):
        wait_until_joined(server)
        server.stop()
        child.signal(signal.Signals(number))
        code = child.wait()

    assert code == 128 + number
    assert "Traceback" not in child.output
    lock = served(data_dir).server_lock()
    wait_until(lock.take_alone, description="the server is gone")
    lock.close()


FINALISED = """
import os, signal, sys, time
from toolonce.ops.server.termination import signals_as_exceptions
class Finalised:
    def __del__(self):
        os.kill(os.getpid(), int(sys.argv[1]))
with signals_as_exceptions():
    Finalised()
    time.sleep(60)
"""
WHOLE = """
import os, sys
from toolonce.ops.server.termination import signals_as_exceptions, uninterrupted
with signals_as_exceptions():
    with uninterrupted():
        os.kill(os.getpid(), int(sys.argv[1]))
        print("whole", flush=True)
    print("went on", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_that_comes_while_an_object_is_finalised_is_not_lost(number: signal.Signals) -> None:
    with Child.python("-c", FINALISED, str(int(number))) as child:
        code = child.wait(20)

    assert code == (-number if number is signal.SIGINT else 128 + number)


@pytest.mark.parametrize("code", [1, 137, 255])
def test_another_exit_in_a_finaliser_is_no_signal(code: int) -> None:
    program = (
        "import sys, threading\n"
        "from toolonce.ops.server.termination import signals_as_exceptions\n"
        "class Finalised:\n"
        "    def __del__(self): sys.exit(int(sys.argv[1]))\n"
        "with signals_as_exceptions():\n"
        "    Finalised()\n"
        "    print(threading.active_count())\n"
    )
    with Child.python("-c", program, str(code)) as child:
        ended = child.wait(20)

    assert ended == 0
    assert child.output.splitlines()[-1] == "1"
    assert "Exception ignored" in child.output


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_in_the_middle_of_a_step_that_must_be_whole_is_heard_at_its_end(number: signal.Signals) -> None:
    with Child.python("-c", WHOLE, str(int(number))) as child:
        child.wait(20)

    assert "whole" in child.output
    assert "went on" not in child.output


def test_a_server_that_nobody_ended_ends_with_the_process(data_dir: Path) -> None:
    code = "import sys; from pathlib import Path; from toolonce.ops.server.embedded import ensure_server; "
    with Child.python("-c", f"{code} ensure_server(Path(sys.argv[1]))", str(data_dir)) as child:
        child.wait(20)

    lock = DataFolder(data_dir.resolve()).server_lock()
    assert lock.take_alone()
    lock.close()


def test_what_ignores_a_closed_terminal_goes_on_ignoring_it(data_dir: Path) -> None:
    env = {"XDG_DATA_HOME": str(data_dir), "TOOLONCE_REDIS_URL": ""}
    command = f"trap '' HUP; exec {shlex.quote(sys.executable)} -m toolonce.ops tail"
    with (
        ensure_server(served(data_dir).path) as server,
        Child("bash", "-c", command, env=env, cwd=data_dir) as child,
    ):
        wait_until_joined(server)
        child.signal(signal.SIGHUP)
        assert child.terminate() == 128 + signal.SIGTERM


def test_a_server_whose_last_user_is_interrupted_while_it_joins_does_not_stay(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starter = ensure_server(data_dir)
    ask = server_process.ask

    def left_and_interrupted(folder: DataFolder) -> server_process.ServerIdentity:
        monkeypatch.setattr(server_process, "ask", ask)
        starter.stop()
        raise KeyboardInterrupt

    monkeypatch.setattr(server_process, "ask", left_and_interrupted)
    with pytest.raises(KeyboardInterrupt):
        ensure_server(data_dir)

    lock = DataFolder(data_dir.resolve()).server_lock()
    wait_until(lock.take_alone, description="the server is gone")
    lock.close()


def test_a_server_that_is_interrupted_while_it_starts_does_not_stay(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: EmbeddedServer) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(EmbeddedServer, "_require_that_it_lives", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ensure_server(data_dir)

    lock = DataFolder(data_dir.resolve()).server_lock()
    assert lock.take_alone()
    lock.close()
