"""Cheap real processes: one process imports everything once and forks a child for each command that is asked for.

A fork starts in milliseconds where an interpreter needs a second. The children are processes of their own in groups of
their own; they are killed, stopped and looked at by the operating system's means, and their parent reaps them.
"""

from __future__ import annotations

import faulthandler
import json
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import tests.support.crash.tools  # noqa: F401  what children need is imported before they are forked
import toolonce.worker.runtime.process  # noqa: F401
from tests.support.crash import harness as crash_harness
from tests.support.processes.processes import Child, state_of
from tests.support.processes.tools_under_test import VARIABLE
from tests.support.processes.workers import TOOLS, Site
from tests.support.wait import wait_until
from toolonce.ops import cli
from toolonce.store import crashpoints

_PROGRAMS: dict[str, Callable[[list[str]], int]] = {"toolonce": cli.main, "harness": crash_harness.main}
_POLL_S = 0.02
SHOW_STACKS = signal.SIGUSR1


class StartedProcess:
    """A process that a `ProcessStarter` has forked. As a context manager it is killed at the end of the block."""

    def __init__(self, pid: int, log: Path) -> None:
        self.pid = pid
        self._log = log

    @property
    def output(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    @property
    def is_gone(self) -> bool:
        return state_of(self.pid) in {"", "Z", "X"}

    @property
    def is_stopped(self) -> bool:
        return state_of(self.pid) == "T"

    def wait_for_line(self, part: str, timeout: float = 60) -> None:
        wait_until(lambda: part in self.output or self.is_gone, timeout, f"{part!r} in: {self.output}")
        assert part in self.output, f"it ended without {part!r}: {self.output}"

    def wait_until_gone(self, timeout: float = 60) -> None:
        try:
            wait_until(lambda: self.is_gone, timeout)
        except AssertionError:
            self.signal(SHOW_STACKS)
            with suppress(AssertionError):
                wait_until(lambda: "most recent call first" in self.output, 5)
            raise AssertionError(f"process {self.pid} does not end: {self.output}") from None

    def wait_until_stopped(self, timeout: float = 60) -> None:
        wait_until(lambda: self.is_stopped or self.is_gone, timeout, f"process {self.pid} stops: {self.output}")
        assert not self.is_gone, f"it ended instead of stopping: {self.output}"

    def signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def resume(self) -> None:
        self.signal(signal.SIGCONT)

    def kill9(self) -> None:
        self.signal(signal.SIGKILL)
        self.wait_until_gone()

    def drain(self) -> None:
        """Ask it to end, and wait until it has."""
        self.signal(signal.SIGTERM)
        self.wait_until_gone()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.kill9()


class ProcessStarter:
    """Starts processes for tests, from any thread. Usable as a context manager."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._born = 0
        self._child = Child.python("-m", "tests.support.crash.process_starter")
        self._child.wait_for_line("ready", timeout=60)

    def start(self, *words: str, env: Mapping[str, str] | None = None, crash: str = "") -> StartedProcess:
        """Run `toolonce ...` or `harness ...` in a new process, armed with a crash point if one is given."""
        with self._lock:
            self._born += 1
            number, log = self._born, self._folder / f"process-{self._born}.log"
            order = {"number": number, "words": words, "env": dict(env or {}), "crash": crash, "log": str(log)}
            self._child.send_line(json.dumps(order))
            born = self._child.wait_for_line(rf"^born {number} (\d+)$", timeout=60)
        return StartedProcess(int(born[1]), log)

    def work(self, site: Site, *more: str, crash: str = "", lease_ms: int = 500) -> StartedProcess:
        """A worker for a site, with one slot."""
        words = ("work", "--tools", TOOLS, "--redis", site.url, "--namespace", site.namespace,
                 "--lease", f"{lease_ms}ms", "--concurrency", "1", *more)  # fmt: skip
        return self.start("toolonce", *words, env={VARIABLE: str(site.ledger.path)}, crash=crash)

    def close(self) -> None:
        self._child.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _fork(order: dict[str, Any]) -> int:
    pid = os.fork()
    # On both sides: whoever hears of the child may signal its group at once, and the child may fork at once.
    os.setpgid(pid, pid)
    if pid:
        return pid
    _redirect(order["log"])
    faulthandler.register(SHOW_STACKS)
    os.environ.update(order["env"])
    crashpoints.arm(order["crash"])
    program, *words = order["words"]
    code = 1
    try:
        code = _PROGRAMS[program](words)
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _redirect(log: str) -> None:
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (out, 1), (out, 2)):
        os.dup2(source, target)


def _reap() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _serve() -> None:
    """Fork on request until nobody asks any more. One thread only: that is what makes forking safe."""
    cli.build_parser()  # imports what its commands need
    print("ready", flush=True)
    waiting = b""
    while True:
        if select.select([0], [], [], _POLL_S)[0]:
            data = os.read(0, 65536)
            if not data:
                return
            *lines, waiting = (waiting + data).split(b"\n")
            for line in lines:
                order = json.loads(line)
                print(f"born {order['number']} {_fork(order)}", flush=True)
        _reap()


if __name__ == "__main__":
    assert threading.active_count() == 1
    _serve()
