"""The transient server: gone with whoever wanted it, however that one ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.processes.processes import Child
from tests.support.wait import wait_until
from toolonce.ops.server.embedded import transient_server

USE = """
import os, signal, sys
from toolonce.ops.server.embedded import transient_server
server = transient_server()
if sys.argv[1] == "revived":
    os.kill(server.process_id, signal.SIGKILL)
    server.revive()
print("server", server.process_id, server.folder, server.url, flush=True)
if sys.argv[1] != "exit":
    sys.stdin.readline()
"""


def is_running(process_id: str) -> bool:
    try:
        state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"  # dead, and its new parent has not looked yet


def test_it_is_gone_with_its_folder_when_it_is_stopped() -> None:
    with transient_server() as server:
        socket = Path(server.url.removeprefix("unix://"))
        assert server.is_alive()

    assert not server.is_alive()
    assert not server.folder.exists()
    assert not socket.exists()


@pytest.mark.parametrize("how", ["exit", "killed", "revived"])
def test_it_dies_with_its_process(how: str) -> None:
    with Child.python("-c", USE, how) as user:
        server = user.wait_for_line(r"server (\d+) (\S+) unix://(\S+)")
        if how == "exit":
            assert user.wait() == 0
        else:
            user.kill9()

        wait_until(lambda: not is_running(server[1]), description="the server has died with its process")
        wait_until(lambda: not Path(server[2]).exists(), description="its folder is deleted")
        wait_until(lambda: not Path(server[3]).exists(), description="its socket is deleted")


def test_two_of_them_are_two_servers() -> None:
    with transient_server() as one, transient_server() as other:
        assert one.process_id != other.process_id
        assert one.folder != other.folder
