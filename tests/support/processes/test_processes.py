"""The tests' own processes: seen, stopped and gone."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.support.crash.process_starter import ProcessStarter
from tests.support.processes.leftovers import leftover_processes
from tests.support.processes.processes import Child
from tests.support.processes.workers import TOOLS
from tests.support.wait import wait_until

ECHO = "import sys\nprint('ready')\nfor line in sys.stdin: print('got', line.strip())"
# A grandchild in a session of its own: no process group holds it, no parent remembers it.
ESCAPE = """
import subprocess, sys
command = [sys.executable, "-c", "input()"]
subprocess.Popen(command, start_new_session=True, stdin=0, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
"""


def test_its_lines_are_seen_as_they_come() -> None:
    with Child.python("-c", ECHO) as child:
        child.wait_for_line("ready")
        child.send_line("hello")

        assert child.wait_for_line(r"got (\w+)")[1] == "hello"
        assert child.exit_code is None


def test_an_end_without_the_awaited_line_is_reported_at_once_with_its_output() -> None:
    with Child.python("-c", "raise SystemExit('no luck')") as child:
        with pytest.raises(AssertionError, match="no luck"):
            child.wait_for_line("ready", timeout=60)

        assert child.wait() == 1


def test_a_killed_one_is_reaped() -> None:
    with Child.python("-c", ECHO) as child:
        child.wait_for_line("ready")
        child.kill9()

        assert child.exit_code == -signal.SIGKILL


def test_a_started_process_can_be_killed_the_moment_it_exists(tmp_path: Path) -> None:
    with ProcessStarter(tmp_path) as starter:
        for _ in range(20):
            started = starter.start("toolonce", "work", "--tools", TOOLS, "--redis", f"unix://{tmp_path}/nobody")
            assert os.getpgid(started.pid) == started.pid
            started.kill9()


def test_tests_hear_the_interrupt_and_the_hangup_however_they_were_started() -> None:
    """A shell starts what runs in the background deaf to Ctrl-C, nohup to the hangup; children inherit it."""
    for number in (signal.SIGINT, signal.SIGHUP):
        assert signal.getsignal(number) is not signal.SIG_IGN


def test_a_paused_one_does_nothing_until_it_is_resumed() -> None:
    with Child.python("-c", ECHO) as child:
        child.wait_for_line("ready")
        child.pause()
        assert os.WIFSTOPPED(os.waitpid(child.pid, os.WUNTRACED)[1])
        child.send_line("hello")
        assert child.lines == ("ready",)
        child.resume()

        child.wait_for_line("got hello")


def escaped() -> list[str]:
    return [command for command in leftover_processes().values() if "input()" in command]


def test_a_process_that_escaped_its_parent_is_found() -> None:
    with Child.python("-c", ESCAPE) as child:
        assert child.wait() == 0
        assert escaped()
        child.send_line("end")

        wait_until(lambda: not escaped(), description="the escaped process has ended")


def test_waiting_in_vain_says_for_what() -> None:
    with pytest.raises(AssertionError, match="the moon turns blue"):
        wait_until(lambda: False, 0.01, "the moon turns blue")
