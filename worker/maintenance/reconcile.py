"""Reconciles: unknown calls are settled by asking the tool's own ``reconcile`` whether the effect is there.

Decides when to ask, what an answer means and how long to wait before asking again. A reconcile only looks; it may be
asked twice. Whatever one of them does concerns its own call: each is asked in a thread of its own, one at a time for
each tool, and given up at its limit.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from ...store.model.errors import StoreError
from ...store.model.outcomes import Failure
from ...store.model.plain import visible
from ...store.model.states import Operation, State
from ...store.operations.operators import Actor, Decision, Expected, resolve, retry
from ...store.operations.recovery import ReconcileTask, reconcile, reconcile_later
from ...store.operations.runs import Run
from ..execution.prepare import Ready, prepare
from ..execution.run_session import WorkerContext
from ..execution.service import ThreadService
from ..tools.handler_result import End, Kind, named
from ..tools.registry import Registry
from .process_identity import is_gone
from .reconcilers import limit_s

_LOG = logging.getLogger("toolonce.worker")
_EVERY_S = 1.0
_SLACK_S = 2.0
"""For those that end at their limit by themselves, or are killed then."""
_ASK_LEASE_MORE_MS = 5_000
_RECONCILE = Operation.RECONCILE
_FIRST_WAIT_MS, _LONGEST_WAIT_MS = 1_000, 600_000
GONE_AFTER_MS = 600_000
"""A tool that runs again what its reconcile does not find is not asked before the lost attempt's process is known to be
gone, but for this time at most: a process of another host, or one that hangs, is never known to be."""
_LOOK_AGAIN_MS = 2_000
Ask = Callable[[Ready, Run], End]


class _ReconcileRun:
    """One reconcile in its thread. Its end and its limit race for the first word."""

    def __init__(self, found: ReconcileTask, limit: float) -> None:
        self.found = found
        self.limit = limit
        self.ends_at = time.monotonic() + limit + _SLACK_S
        self._word = threading.Lock()

    def is_first(self) -> bool:
        return self._word.acquire(blocking=False)


class ReconcileLoop(ThreadService):
    """The reconciles of one worker."""

    def __init__(self, context: WorkerContext, registry: Registry, ask: Ask, *, worker: str) -> None:
        super().__init__("toolonce-reconcile")
        self._connection = context.connection
        self._registry = registry
        self._keyring = context.keyring
        self._worker = worker
        self._counters = context.counters
        self._ask = ask
        self._asked: dict[str, _ReconcileRun] = {}
        self._pauses: dict[str, tuple[int, float]] = {}

    def start(self) -> None:
        """See `Service.start`; without a tool that has a reconcile there is nothing to do."""
        if any(tool.reconciler for tool in self._registry):
            super().start()

    def _work(self) -> None:
        while not self._ended:
            try:
                self._give_up_overdue()
                while not self._ended and self._hand_out():
                    pass
            except StoreError as error:
                _LOG.warning("reconciles wait for the store: %s", error)
            except Exception:
                _LOG.exception("a round of reconciles failed; the next one tries again")
            self._bell.wait(_EVERY_S)
            self._bell.clear()

    def _hand_out(self) -> bool:
        """Begin to ask about one call; False where there is none."""
        now = time.monotonic()
        tools = [
            tool
            for tool in self._registry
            if tool.reconciler and tool.name not in self._asked and self._pauses.get(tool.name, (0, 0.0))[1] <= now
        ]
        if not tools:
            return False
        lease_ms = round(max(limit_s(tool) for tool in tools) * 1000) + _ASK_LEASE_MORE_MS
        names = [tool.name for tool in tools]
        found = self._connection.run(reconcile(self._space, names, lease_ms=lease_ms, worker=self._worker))
        if found is None:
            return False
        if self._is_too_early(found):
            return True
        asking = _ReconcileRun(found, next(limit_s(tool) for tool in tools if tool.name == found.run.tool))
        self._asked[found.run.tool] = asking
        threading.Thread(target=self._run, args=(asking,), name="toolonce-reconcile", daemon=True).start()
        return True

    def _is_too_early(self, found: ReconcileTask) -> bool:
        """The attempt may still have its effect, in a process that cannot be asked; "not there" would run it again."""
        tool = self._registry.find(found.run.tool)
        if not (tool and tool.spec.rerun_absent) or found.ended or found.unknown_ms >= GONE_AFTER_MS:
            return False
        told = self._connection.command("GET", self._space.worker_key(found.worker))
        if is_gone((told or b"").decode()):
            return False
        wait_ms = min(_LOOK_AGAIN_MS, GONE_AFTER_MS - found.unknown_ms)
        heard = f"not asked yet: worker {found.worker} is not known to be gone"
        self._connection.run(reconcile_later(self._space, found.run.call, wait_ms=wait_ms, heard=heard, counts=False))
        return True

    def _give_up_overdue(self) -> None:
        for name, asking in tuple(self._asked.items()):
            if time.monotonic() < asking.ends_at or not asking.is_first():
                continue
            self._counters.abandoned += 1
            hung = self._pauses.get(name, (0, 0.0))[0] + 1
            self._pauses[name] = hung, time.monotonic() + _wait_ms(hung) / 1000
            self._asked.pop(name, None)
            self._later(asking.found, f"its reconcile gave no answer within {asking.limit:g} s")

    def _run(self, asking: _ReconcileRun) -> None:
        found, name = asking.found, asking.found.run.tool
        try:
            self._follow(asking)
        except StoreError as error:
            _LOG.warning("the reconcile of call %s could not be told to the store: %s", found.run.call, error)
        except Exception:
            _LOG.exception("the reconcile of call %s failed; it is asked again", found.run.call)
        if self._asked.get(name) is asking:
            del self._asked[name]
        self._bell.set()

    def _follow(self, asking: _ReconcileRun) -> None:
        found = asking.found
        ready = self._prepare(found.run)
        end = self._ask(ready, found.run) if isinstance(ready, Ready) else ready
        is_first = asking.is_first()
        if not is_first:
            self._counters.abandoned -= 1
            _LOG.info("call %s: its reconcile answered late: %s", found.run.call, end.kind)
        if isinstance(ready, Ready) and end.kind is Kind.RETURNED:
            self._happened(found.run, ready, end)
        elif isinstance(ready, Ready) and end.kind is Kind.ABSENT:
            self._absent(found.run, ready, end.message)
        elif is_first:
            self._later(found, end.message)
            return
        self._pauses.pop(found.run.tool, None)

    def _prepare(self, run: Run) -> Ready | End:
        try:
            ready = prepare(run, self._registry, self._keyring)
        except Exception as error:
            why = type(error).__name__ if run.secret else named(error)  # its text may repeat a secret
            return End(Kind.RAISED, message=f"the reconcile could not be run: {why}")
        if isinstance(ready, Ready):
            return ready
        return End(Kind.RAISED, message="the call does not fit the tool of this worker")

    def _happened(self, run: Run, ready: Ready, end: End) -> None:
        text, _ = ready.protect((end.result, end.marks), run, self._keyring)
        self._tell(run, resolve(self._space, _seen(run), text, self._actor("it happened"), operation=_RECONCILE))

    def _absent(self, run: Run, ready: Ready, why: str) -> None:
        by = self._actor(why or "it did not happen")
        if ready.tool.spec.rerun_absent:
            self._tell(run, retry(self._space, _seen(run), by, operation=_RECONCILE))
            return
        failure = Failure("did_not_happen", f"reconcile: the effect did not happen{f': {why}' if why else ''}")
        self._tell(run, resolve(self._space, _seen(run), failure, by, operation=_RECONCILE))

    def _later(self, found: ReconcileTask, heard: str) -> None:
        wait_ms = _wait_ms(found.asked)
        run = found.run
        _LOG.warning(
            "call %s (%s) is still in doubt after reconcile %d: %s; asked again in %d s",
            run.call, run.tool, found.asked + 1, visible(heard), wait_ms // 1000,
        )  # fmt: skip
        self._connection.run(reconcile_later(self._space, run.call, wait_ms=wait_ms, heard=heard))

    def _tell(self, run: Run, invocation: Any) -> None:
        done: Decision = self._connection.run(invocation)
        _LOG.info("call %s was unknown; reconcile: %s %s", run.call, done.verdict, done.detail)

    @property
    def _space(self) -> Any:
        return self._connection.space

    def _actor(self, reason: str) -> Actor:
        return Actor(actor=f"reconcile/{self._worker}", reason=reason)


def _seen(run: Run) -> Expected:
    return Expected(run.call, State.UNKNOWN, run.fence)


def _wait_ms(times: int) -> int:
    """The wait after so many reconciles without an answer."""
    return min(_LONGEST_WAIT_MS, _FIRST_WAIT_MS * int(2 ** min(times, 20)))
