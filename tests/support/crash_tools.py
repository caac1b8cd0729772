"""The five kinds of tools that are killed in tests. What they do is one effect in the ledger that TOOLONCE_CRASH_LEDGER
names. Where the call says so, its first attempt then arms a crash point, and each attempt waits for a gate, a file
beside the ledger, so that a test finds it inside.
"""

from __future__ import annotations

import os
from pathlib import Path

from tenacity import wait_fixed

from tests.support.crash_ledger import CrashLedger
from tests.support.wait import wait_until
from toolonce.store import crashpoints
from toolonce.store.specs import Effect
from toolonce.worker import Call, DidNotHappen, Registry
from toolonce.worker.retries import Retry
from toolonce.worker.tool import Handler, Tool

VARIABLE = "TOOLONCE_CRASH_LEDGER"
KINDS = ("read", "idempotent", "mutating", "begins", "reconcile")
"""The tools' names; the last two are mutating, with ``call.begin()`` and with a read-back."""


def ledger() -> CrashLedger:
    return CrashLedger(Path(os.environ[VARIABLE]))


def open_gate(ledger_path: Path, name: str) -> None:
    """Let the calls that wait for this gate go on."""
    _gate(ledger_path, name).touch()


def _gate(ledger_path: Path, name: str) -> Path:
    return ledger_path.parent / f"gate-{name}"


def _work(call: Call, gate: str, arm: str, *, begin: bool) -> str:
    notes = ledger()
    notes.enter(call.key, call.tool, call.fence, call.attempt)
    if begin:
        call.begin()
    notes.happen(call.key, call.tool, call.fence, call.idempotency_key)
    if arm and call.attempt == 1:
        crashpoints.arm(arm)
    if gate:
        wait_until(_gate(notes.path, gate).exists, 60, f"the gate {gate} opens")
    return call.key


def read(lane: str, gate: str = "", arm: str = "", begin: bool = False, *, call: Call) -> str:
    """Safe to repeat."""
    return _work(call, gate, arm, begin=begin)


def idempotent(lane: str, gate: str = "", arm: str = "", begin: bool = False, *, call: Call) -> str:
    """Safe to repeat with the same idempotency key."""
    return _work(call, gate, arm, begin=begin)


def mutating(lane: str, gate: str = "", arm: str = "", begin: bool = False, *, call: Call) -> str:
    """Never repeated. It may say begin, but has not declared that it does."""
    return _work(call, gate, arm, begin=begin)


def begins(lane: str, gate: str = "", arm: str = "", begin: bool = False, *, call: Call) -> str:
    """Always says begin before its effect."""
    return _work(call, gate, arm, begin=True)


def reconcile(lane: str, gate: str = "", arm: str = "", begin: bool = False, *, call: Call) -> str:
    """Can be asked later whether it happened."""
    return _work(call, gate, arm, begin=begin)


def was_it_there(lane: str, gate: str = "", arm: str = "", begin: bool = False, *, call: Call) -> str:
    """Look for the effect by the idempotency key."""
    if not ledger().has(call.idempotency_key):
        raise DidNotHappen("there is no effect of this key")
    return call.key


def _registry(*, concurrency: int, order_by: tuple[str, ...]) -> Registry:
    registry = Registry()

    def register(handler: Handler, effect: Effect, *, begins: bool = False) -> Tool:
        retry = Retry(10, wait_fixed(0.02))
        tool = registry.tool(
            effect=effect, begins=begins, timeout=0, retry=retry, concurrency=concurrency, order_by=order_by
        )
        return tool(handler)

    register(read, Effect.READ)
    register(idempotent, Effect.IDEMPOTENT)
    register(mutating, Effect.MUTATING)
    register(begins, Effect.MUTATING, begins=True)
    register(reconcile, Effect.MUTATING).reconcile(was_it_there)
    return registry


tools = _registry(concurrency=1, order_by=("lane",))
"""One slot over all workers, and one by one in a lane: what a dead process leaves behind is seen at once."""
crowd = _registry(concurrency=8, order_by=())
"""Many at once."""
