"""Processes of ours in tests: started, watched line by line, killed or paused, and always reaped."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

from tests.support.wait import PATIENCE_SECONDS, wait_until

ROOT = Path(__file__).resolve().parents[3]


class Child:
    """A child process in a process group of its own; its standard output and error are collected together.

    As a context manager it ends with the block, together with all that it started in its group.
    """

    def __init__(self, *command: str, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **(env or {})},
            cwd=cwd or ROOT,
            start_new_session=True,
        )
        self._lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @classmethod
    def python(cls, *arguments: str, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Child:
        """Start this interpreter: `Child.python("-m", "toolonce.ops.cli", "work")`, `Child.python("-c", text)`."""
        return cls(sys.executable, *arguments, env=env, cwd=cwd)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative is the signal that ended it."""
        return self._process.poll()

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(self._lines)

    @property
    def output(self) -> str:
        return "\n".join(self._lines)

    def wait_for_line(self, pattern: str, timeout: float = PATIENCE_SECONDS) -> re.Match[str]:
        """Return the match of the first line, old or new, in which the pattern is found."""

        def found() -> re.Match[str] | None:
            ended = not self._reader.is_alive()  # asked first: after its end no line can follow
            match = next((match for line in self.lines if (match := re.search(pattern, line))), None)
            assert match or not ended, f"it ended without a line like {pattern!r}:\n{self.output}"
            return match

        match = wait_until(found, timeout, f"a line like {pattern!r}")
        assert match
        return match

    def send_line(self, text: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(f"{text}\n".encode())
        self._process.stdin.flush()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process alone."""
        self._process.send_signal(number)

    def pause(self) -> None:
        """SIGSTOP to the whole group: nothing of it moves, its connections stay open."""
        os.killpg(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.killpg(self.pid, signal.SIGCONT)

    def wait_until_stopped(self) -> None:
        """Until it does not move any more: one that stops itself does so a moment after others see what it did."""
        wait_until(lambda: state_of(self.pid) == "T" or self.exit_code is not None, description="the process stops")
        assert self.exit_code is None, f"it ended instead of stopping:\n{self.output}"

    def kill9(self) -> None:
        """SIGKILL to the whole group, and wait until the process is gone."""
        self._kill_group()
        self.wait()

    def terminate(self, timeout: float = PATIENCE_SECONDS) -> int:
        """Ask it to end and return its exit code."""
        self.signal(signal.SIGTERM)
        return self.wait(timeout)

    def wait(self, timeout: float = PATIENCE_SECONDS) -> int:
        """Wait for its end; return its exit code, with all its output collected."""
        code = self._process.wait(timeout)
        self._reader.join(timeout)
        return code

    def close(self) -> None:
        self._kill_group()
        self._process.wait(timeout=10)
        self._reader.join(timeout=10)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self._lines.append(line.decode(errors="replace").rstrip("\n"))


def state_of(pid: int) -> str:
    """The state of a process as the kernel names it, as "T" for a stopped one; "" where there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""
