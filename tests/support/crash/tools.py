"""The five kinds of tools that are killed in tests. What they do is one effect in the ledger that TOOLONCE_CRASH_LEDGER
names. A call can say how: slowly, or waiting for a gate, a file beside the ledger, so that a test finds it inside.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from pydantic import BaseModel
from tenacity import wait_fixed

from tests.support.crash.ledger import CrashLedger
from tests.support.wait import wait_until
from toolonce.store import crashpoints
from toolonce.store.model.specs import Effect
from toolonce.worker import Call, DidNotHappen, Registry
from toolonce.worker.tools.retries import Retry
from toolonce.worker.tools.tool import Handler, Tool

VARIABLE = "TOOLONCE_CRASH_LEDGER"
KINDS = ("read", "idempotent", "mutating", "begins", "reconcile")
"""The tools' names; the last two are mutating, with ``call.begin()`` and with a reconcile."""


def ledger() -> CrashLedger:
    return CrashLedger(Path(os.environ[VARIABLE]))


def open_gate(ledger_path: Path, name: str) -> None:
    """Let the calls that wait for this gate go on."""
    _gate(ledger_path, name).touch()


def _gate(ledger_path: Path, name: str) -> Path:
    return ledger_path.parent / f"gate-{name}"


class How(BaseModel):
    """What a call asks of its handler.

    begin: say ``call.begin()`` before the effect.
    arm: a crash point that the first attempt arms after the effect.
    gate: wait there for this gate.
    takes_ms: how long the work takes, half of it before the effect and half after it.
    """

    begin: bool = False
    arm: str = ""
    gate: str = ""
    takes_ms: int = 0


def _work(call: Call, how: How | None, *, begin: bool = False) -> str:
    how = how or How()
    notes = ledger()
    notes.enter(call.key, call.tool, call.fence, call.attempt)
    time.sleep(how.takes_ms / 2000)
    if begin or how.begin:
        call.begin()
    notes.happen(call.key, call.tool, call.fence, call.idempotency_key)
    if call.attempt == 1 and how.arm:
        crashpoints.arm(how.arm)
    if how.gate:
        wait_until(_gate(notes.path, how.gate).exists, 60, f"the gate {how.gate} opens")
    time.sleep(how.takes_ms / 2000)
    return call.key


def read(lane: str, how: How | None = None, *, call: Call) -> str:
    """Safe to repeat."""
    return _work(call, how)


def idempotent(lane: str, how: How | None = None, *, call: Call) -> str:
    """Safe to repeat with the same idempotency key."""
    return _work(call, how)


def mutating(lane: str, how: How | None = None, *, call: Call) -> str:
    """Never repeated. It may say begin, but has not declared that it does."""
    return _work(call, how)


def begins(lane: str, how: How | None = None, *, call: Call) -> str:
    """Always says begin before its effect."""
    return _work(call, how, begin=True)


def reconcile(lane: str, how: How | None = None, *, call: Call) -> str:
    """Can be asked later whether it happened."""
    return _work(call, how)


def again(lane: str, how: How | None = None, *, call: Call) -> str:
    """Is run again where the reconcile finds that it did not happen."""
    return _work(call, how)


def was_it_there(lane: str, how: How | None = None, *, call: Call) -> str:
    """Look for the effect by the idempotency key."""
    if not ledger().has(call.idempotency_key):
        raise DidNotHappen("there is no effect of this key")
    return call.key


def _registry(*, concurrency: int, order_by: tuple[str, ...]) -> Registry:
    registry = Registry()

    def register(handler: Handler, effect: Effect, *, begins: bool = False, rerun_absent: bool = False) -> Tool:
        tool = registry.tool(
            effect=effect,
            begins=begins,
            rerun_absent=rerun_absent,
            timeout=None,
            retry=Retry(10, wait_fixed(0.02)),
            concurrency=concurrency,
            order_by=order_by,
        )
        return tool(handler)

    register(read, Effect.READ)
    register(idempotent, Effect.IDEMPOTENT)
    register(mutating, Effect.MUTATING)
    register(begins, Effect.MUTATING, begins=True)
    register(reconcile, Effect.MUTATING).reconcile(was_it_there)
    register(again, Effect.MUTATING, rerun_absent=True).reconcile(was_it_there)
    return registry


tools = _registry(concurrency=1, order_by=("lane",))
"""One slot over all workers, and one by one in a lane: what a dead process leaves behind is seen at once."""
crowd = _registry(concurrency=8, order_by=())
"""Many at once."""
