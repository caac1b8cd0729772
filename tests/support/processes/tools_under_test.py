"""Tools whose effects are counted outside Redis: each effect is one line in the file that TOOLONCE_TEST_LEDGER names.

Waiting for a test's word is done by gates: files in the ledger's folder that the test makes.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import time
from pathlib import Path
from typing import Any

from tenacity import wait_fixed

from tests.support.wait import PATIENCE_SECONDS, wait_until
from toolonce.worker import Call, DidNotHappen, Isolation, NotStarted, Registry, ToolError
from toolonce.worker.tools.retries import Retry

VARIABLE = "TOOLONCE_TEST_LEDGER"
SOON = Retry(attempts=3, wait=wait_fixed(0.02))
tools = Registry()


class EffectsFile:
    """The effects, read by tests and written by tools, in whatever process they are."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.environ[VARIABLE] = str(path)

    @classmethod
    def current(cls) -> Path:
        return Path(os.environ[VARIABLE])

    def lines(self, start: str = "") -> list[str]:
        if not self.path.exists():
            return []
        return [line for line in self.path.read_text().splitlines() if line.startswith(start)]

    def count(self, start: str = "") -> int:
        return len(self.lines(start))

    def open_gate(self, name: str) -> None:
        (self.path.parent / f"gate-{name}").touch()


def effect(line: str) -> None:
    """Happen, once per line written."""
    handle = os.open(EffectsFile.current(), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(handle, f"{line}\n".encode())
    finally:
        os.close(handle)


def gate(name: str) -> Path:
    return EffectsFile.current().parent / f"gate-{name}"


def pass_gate(name: str, timeout: float = PATIENCE_SECONDS) -> None:
    """Wait until the test opens the gate."""
    wait_until(gate(name).exists, timeout, f"gate {name} opens")


@tools.tool(effect="mutating", retry=SOON)
def put(what: str) -> str:
    """Have one effect and return."""
    effect(f"put {what}")
    return what


@tools.tool(effect="mutating", retry=SOON)
def put_and_wait(what: str) -> str:
    """Have one effect, then wait for the gate of the same name."""
    effect(f"put {what}")
    pass_gate(what)
    return what


@tools.tool(effect="mutating", begins=True, retry=SOON)
def put_with_begin(what: str, *, call: Call) -> str:
    """Say begin, then have one effect."""
    effect(f"entered {what}")
    call.begin()
    effect(f"put {what}")
    return what


def _behind_gate(what: str, *, call: Call) -> str:
    """Wait for the gate of the same name, say begin, then have one effect."""
    effect(f"entered {what}")
    pass_gate(what)
    call.begin()
    effect(f"put {what}")
    return what


tools.tool(name="put_behind_gate", effect="mutating", begins=True, retry=SOON)(_behind_gate)
tools.tool(name="process_put_behind_gate", effect="mutating", begins=True, retry=SOON, isolation="process")(
    _behind_gate
)


@tools.tool(effect="read", retry=SOON)
def look(what: str) -> str:
    """Be harmless."""
    effect(f"look {what}")
    return what


@tools.tool(effect="read", retry=SOON)
def look_and_wait(what: str) -> str:
    """Be harmless, and wait for the gate of the same name."""
    effect(f"look {what}")
    pass_gate(what)
    return what


@tools.tool(effect="idempotent", retry=SOON)
def set_to(what: str, *, call: Call) -> str:
    """Have an effect that repeats do not add to."""
    effect(f"set {call.idempotency_key}")
    return what


@tools.tool(effect="read", schema={"type": "object", "properties": {"value": {}}})
def echo(value: Any = None) -> Any:
    """Return what came."""
    return value


@tools.tool(effect="mutating")
def fail(message: str) -> None:
    """Fail, finally."""
    raise ToolError(message)


@tools.tool(effect="mutating")
def crash(message: str) -> None:
    """Raise something that says nothing about the effect."""
    effect(f"put {message}")
    raise RuntimeError(message)


@tools.tool(effect="mutating", retry=SOON)
def refuse_first(what: str, *, call: Call) -> str:
    """Be refused at the first attempt, before anything happened."""
    if call.attempt == 1:
        raise NotStarted("the other side refused the connection", retry_after=0.01)
    effect(f"put {what}")
    return what


@tools.tool(effect="read", retry=SOON)
def fail_until(what: str, attempt: int, *, call: Call) -> int:
    """Fail until this attempt."""
    effect(f"try {what}")
    if call.attempt < attempt:
        raise RuntimeError("not yet")
    return call.attempt


@tools.tool(effect="mutating", timeout=0.3)
def overrun(what: str) -> str:
    """Have an effect, then wait past the limit for the gate of the same name."""
    effect(f"put {what}")
    pass_gate(what)
    return what


@tools.tool(effect="read", timeout=1, retry=SOON)
def overrun_once(what: str, *, call: Call) -> int:
    """Hang at the first attempt."""
    if call.attempt == 1:
        pass_gate(what)
    return call.attempt


@tools.tool(effect="mutating", isolation="process", timeout=2)
def spin(what: str) -> str:
    """Hold the interpreter in one long match, longer than the limit."""
    effect(f"put {what}")
    re.match(r"(a+)+$", "a" * 64 + "b")
    effect(f"never {what}")
    return what


@tools.tool(effect="mutating", isolation="process")
def hold_interpreter(what: str, seconds: float) -> str:
    """Hold the interpreter in one call after the other for some seconds, never sleeping."""
    effect(f"put {what}")
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        re.match(r"(a+)+$", "a" * 20 + "b")
    return what


@tools.tool(effect="read", isolation="process", retry=SOON)
def in_process(what: str) -> int:
    """Say where it ran."""
    effect(f"look {what} {os.getpid()}")
    return os.getpid()


@tools.tool(effect="mutating", isolation="process")
def die(what: str) -> None:
    """Kill the process that it runs in."""
    effect(f"put {what}")
    os.kill(os.getpid(), 9)


@tools.tool(effect="read", isolation="process", retry=SOON)
def die_always(what: str) -> None:
    """Kill the process that it runs in, every time."""
    effect(f"try {what}")
    os.kill(os.getpid(), 9)


@tools.tool(effect="mutating", isolation="process")
def process_put_and_wait(what: str, *, call: Call) -> str:
    """Have one effect in a process of its own, then wait for the gate."""
    effect(f"put {what} {os.getpid()}")
    call.progress(0.5, "half")
    pass_gate(what)
    return what


@tools.tool(effect="mutating", isolation="process")
def start_program(what: str) -> int:
    """Start a program that ends by itself in a long time only, and wait for it."""
    program = subprocess.Popen(["sleep", "300"])
    effect(f"put {what} {program.pid}")
    return program.wait()


@tools.tool(effect="read")
async def sleep_async(seconds: float) -> float:
    """Sleep on the event loop."""
    await asyncio.sleep(seconds)
    return seconds


@tools.tool(effect="mutating", timeout=1)
async def overrun_async(what: str) -> str:
    """Swallow the cancellation, and return late."""
    effect(f"put {what}")
    try:
        await asyncio.sleep(30)
    except asyncio.CancelledError:
        await asyncio.to_thread(pass_gate, what)
    return what


@tools.tool(effect="read")
def sleep(seconds: float) -> float:
    """Sleep in a thread."""
    time.sleep(seconds)
    return seconds


@tools.tool(effect="mutating")
def until_stopped(what: str, *, call: Call) -> str:
    """Have an effect, and go on until someone asks for a stop."""
    return _until_stopped(what, call)


@tools.tool(effect="mutating", isolation="process")
def process_until_stopped(what: str, *, call: Call) -> str:
    """The same in a process of its own."""
    return _until_stopped(what, call)


@tools.tool(effect="mutating")
async def async_until_stopped(what: str, *, call: Call) -> str:
    """The same on the event loop, where nothing is asked: its task is cancelled."""
    effect(f"put {what}")
    try:
        await asyncio.sleep(PATIENCE_SECONDS)
    except BaseException as error:
        effect(f"stopped {what} {type(error).__name__}")
        raise
    return what


def _until_stopped(what: str, call: Call) -> str:
    effect(f"put {what}")
    try:
        while not gate(what).exists():
            call.check_lease()
            time.sleep(0.01)
    except BaseException as error:
        effect(f"stopped {what} {type(error).__name__}")
        raise
    return what


@tools.tool(effect="mutating", concurrency=5)
def five_at_most(what: int) -> int:
    """Note how many are inside."""
    effect(f"in {what}")
    time.sleep(0.01)
    effect(f"out {what}")
    return what


@tools.tool(effect="idempotent", rate="600/min", retry=20)
def at_a_rate(what: int) -> int:
    """Note each start."""
    effect(f"start {what}")
    return what


@tools.tool(effect="mutating", isolation="process")
def doubt_exit_hard(what: str) -> None:
    """Be in doubt; whoever asks ends the process."""
    raise ConnectionResetError(what)


@doubt_exit_hard.reconcile
def _exit_hard(what: str) -> None:
    os._exit(3)


@tools.tool(effect="mutating", isolation="process", timeout=0.5)
def doubt_spin(what: str) -> None:
    """Be in doubt; whoever asks is held for longer than the limit."""
    raise ConnectionResetError(what)


@doubt_spin.reconcile
def _spin(what: str) -> None:
    re.match(r"(a+)+$", "a" * 64 + "b")


@tools.tool(effect="mutating", isolation="process")
def doubt_good(what: str) -> None:
    """Be in doubt; whoever asks is told."""
    raise ConnectionResetError(what)


@doubt_good.reconcile
async def _good(what: str) -> str:
    return f"found {what}"


@tools.tool(effect="mutating", rerun_absent=True)
def put_again(what: str) -> str:
    """Wait for the gate, then have one effect; may run again where it is not found."""
    effect(f"entered {what}")
    pass_gate(what)
    effect(f"put {what}")
    return what


@put_again.reconcile
def _was_put(what: str) -> str:
    effect(f"asked {what}")
    if f"put {what}" not in EffectsFile(EffectsFile.current()).lines("put"):
        raise DidNotHappen("not in the ledger")
    return what


def _without_processes() -> Registry:
    some = Registry()
    for tool in tools:
        if tool.isolation is not Isolation.PROCESS:
            some.add(tool)
    return some


thread_tools = _without_processes()
"""The same without those that need processes: a worker inside the tests' own process must not fork it."""
