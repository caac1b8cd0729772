"""A test kit for authors of tools: run a tool under a fault, in plain pytest, and see what the store would record.

No Redis, no threads, no waiting: the same policy, the same entry into the handler, and the store's rules for one call
in memory. ``try_out(create_invoice, {...}, fault=Fault.CRASH_AFTER_EFFECT)`` tells how often the handler was entered
and where the call comes to rest.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ..store.model.identity import call_key, fingerprint, idempotency_key, reference
from ..store.model.outcomes import Failure
from ..store.model.sealing import values_at
from ..store.model.secret_texts import Secrets
from ..store.model.specs import Effect
from ..store.model.states import State
from ..store.operations.runs import Ending, Run
from ..store.schema.validation import validate
from .execution.invoke import HandlerEntry, enter, enter_async, enter_reconcile
from .execution.policy import Circumstances, Interrupt, Nothing, RetryLater, Settle, decide, late
from .execution.prepare import Ready
from .tools.authorize import Ask, Deny, consult
from .tools.call import Call, context_of
from .tools.handler_result import End, Kind
from .tools.registry import rules_of
from .tools.tool import Tool


class Fault(StrEnum):
    """What goes wrong in one attempt."""

    NONE = "none"
    CRASH_BEFORE_EFFECT = "crash_before_effect"
    """The worker dies before ``begin`` is written; before the entry, for a tool that does not say begin."""
    CRASH_AFTER_EFFECT = "crash_after_effect"
    """The worker dies when the handler has ended, before its outcome is stored."""
    REPLY_LOST = "reply_lost"
    """The outcome is stored, its acknowledgement is lost, and it is sent again."""
    LEASE_STOLEN = "lease_stolen"
    """The lease is lost once the effect may have started; the handler's end comes late."""
    CANCEL = "cancel"
    """Someone asks for a stop while the handler is at work."""


@dataclass(slots=True)
class Trial:
    """The result of a trial.

    Attributes:
        state: where the call rests; ``value`` counts only where it succeeded.
        entries: how often the handler was entered.
        idempotency_key: what every attempt was given.
        history: what happened, in order, in words.
    """

    idempotency_key: str
    state: State = State.QUEUED
    value: Any = None
    failure: Failure | None = None
    entries: int = 0
    attempts: int = 0
    history: list[str] = field(default_factory=list)
    _go_on: Callable[[], None] = field(default=lambda: None, repr=False, compare=False)

    @property
    def keeps_unique_key(self) -> bool:
        """With ``unique_by``: whether no call with the same values may run any more; not if this had no effect."""
        without = self.failure and (self.failure.effect == "none" or self.failure.code == "did_not_happen")
        return self.state is not State.REFUSED and not (self.state is State.FAILED and without)

    def approve(self) -> Trial:
        """Approve a call that is held for approval, and run it until it rests."""
        if self.state is not State.HELD:
            raise ValueError(f"nothing waits for approval: the call is {self.state}")
        self._go_on()
        return self


def try_out(
    tool: Tool, arguments: dict[str, Any], *, fault: Fault = Fault.NONE, at_attempt: int = 1, turn_id: str = "turn-1"
) -> Trial:
    """Run one call of a tool to its rest, with a fault in one of its attempts.

    It is held where the tool, or the authorize hook of its registry, asks for approval; see `Trial.approve`.

    Args:
        at_attempt: the attempt that the fault meets; all others go undisturbed.
    """
    return _Rehearsal(tool, arguments, turn_id).play(fault, at_attempt)


def call_for(tool: Tool, arguments: dict[str, Any] | None = None, *, turn_id: str = "turn-1") -> Call:
    """The ``call=`` for a direct call of a tool: ``create_invoice("acme", 990, call=call_for(create_invoice))``.

    Its ``begin``, ``progress`` and ``check_lease`` do nothing; it is never cancelled, and it has no run limit.

    Args:
        arguments: what its idempotency key is made of, as `try_out` makes it.
    """
    rehearsal = _Rehearsal(tool, arguments or {}, turn_id)
    rehearsal.trial.attempts = 1
    return context_of(rehearsal._run(), None, _Channel(Fault.NONE))


class _Died(BaseException):
    """The death of the worker, as an exception in a handler."""


class _Rehearsal:
    """The store's rules for one call, in memory."""

    def __init__(self, tool: Tool, arguments: dict[str, Any], turn_id: str) -> None:
        self.tool = tool
        self.arguments = arguments
        self.turn_id = turn_id
        self.call = call_key("testing", "testing", turn_id, reference("call-1", 1))
        self.trial = Trial(idempotency_key(self.call, fingerprint(tool.name, arguments)))
        self.approved = False
        self.waited_s = 0.0
        self.not_started = 0

    def play(self, fault: Fault, at_attempt: int) -> Trial:
        refusal = validate(self.tool.spec.schema, self.arguments)
        values = refusal or self.tool.signature.bind(self.arguments)
        if isinstance(values, Failure):
            self._move(State.REFUSED, "refused", failure=values)
        else:
            secrets = Secrets.of(values_at(self.arguments, self.tool.spec.secret), declared=self.tool.has_secrets)
            self._go_on(Ready(self.tool, self.arguments, values, secrets), fault, at_attempt)
        return self.trial

    def _go_on(self, ready: Ready, fault: Fault, at_attempt: int) -> None:
        trial = self.trial
        while trial.state is State.QUEUED and self._permitted(ready):
            trial.attempts += 1
            self._attempt(ready, fault if trial.attempts == at_attempt else Fault.NONE)
            self._reconcile(ready.values)

        def approved() -> None:
            self.approved = True
            self._move(State.QUEUED, "approved")
            self._go_on(ready, fault, at_attempt)

        trial._go_on = approved

    def _permitted(self, ready: Ready) -> bool:
        """As between a claim and the entry in a worker: nothing of it counts as an attempt."""
        call = context_of(self._run(), None, _Channel(Fault.NONE), ready.secrets)
        match consult(rules_of(self.tool), call, ready.copy_values, approved=self.approved):
            case Deny(reason):
                self._move(State.REFUSED, "denied", failure=Failure("denied", f"not run: {reason}"))
                return False
            case Ask(reason):
                self._move(State.HELD, f"waits for approval: {reason}".removesuffix(": "))
                return False
            case _:
                return True

    def _attempt(self, ready: Ready, fault: Fault) -> None:
        run, channel = self._run(), _Channel(fault)
        if fault is Fault.CRASH_BEFORE_EFFECT and not run.begins:
            self._lose(channel.begun, "the worker died after its claim")
            return
        end = self._enter(HandlerEntry(self.tool, ready.values, context_of(run, None, channel, ready.secrets)))
        if channel.died:
            self._lose(channel.begun, "the worker died before begin was written")
        elif fault is Fault.CRASH_AFTER_EFFECT:
            self._lose(channel.begun, "the worker died before the outcome was stored")
        elif fault is Fault.LEASE_STOLEN:
            self._lose(channel.begun or not run.begins, "the lease was lost")
            self._late(run, end)
        else:
            self._follow(run, end, channel)
            if fault is Fault.REPLY_LOST:
                self.trial.history.append("the reply was lost; sent again, and answered the same")

    def _enter(self, entry: HandlerEntry) -> End:
        self.trial.entries += 1
        return asyncio.run(enter_async(entry)) if self.tool.is_async else enter(entry)

    def _follow(self, run: Run, end: End, channel: _Channel) -> None:
        left_s = self.tool.spec.deadline_ms / 1000 - self.waited_s
        now = Circumstances(begun=channel.begun, left_s=left_s, cancel_requested=channel.fault is Fault.CANCEL)
        match decide(run, end, self.tool.retry, now):
            case Settle(ending):
                self._settle(ending, end.message or "settled")
            case RetryLater(delay_ms, failure, counts):
                self.waited_s += delay_ms / 1000
                self.not_started += not counts
                self._move(State.QUEUED, f"to be tried again: {failure.message}")
            case Interrupt(reason):
                self._lose(channel.begun, reason)
            case Nothing():
                self._lose(channel.begun, "stopped: the lease was lost")

    def _lose(self, begun: bool, why: str) -> None:
        """Nobody runs this attempt any more; the tool's effect decides, as in the store."""
        spec = self.tool.spec
        if spec.effect is Effect.MUTATING and (begun or not spec.begins):
            self._move(State.UNKNOWN, why, failure=Failure("outcome_unknown", why))
        elif self.trial.attempts - self.not_started >= spec.max_attempts:
            self._move(State.FAILED, why, failure=Failure("attempts_exhausted", why))
        else:
            self._move(State.QUEUED, why)

    def _late(self, run: Run, end: End) -> None:
        ending, state = late(run, end), self.trial.state
        counts = state is State.UNKNOWN or (state is State.QUEUED and ending and ending.state is State.SUCCEEDED)
        if ending and counts:
            self._settle(ending, "the late word counts")
        else:
            self.trial.history.append("the late word changes nothing")

    def _reconcile(self, values: dict[str, Any]) -> None:
        """Ask the tool about a call that is unknown now."""
        if self.tool.reconciler is None or self.trial.state is not State.UNKNOWN:
            return
        entry = HandlerEntry(self.tool, values, context_of(self._run(), None, _Channel(Fault.NONE)))
        end = enter_reconcile(entry, lambda found: asyncio.run(_awaited(found)))
        if end.kind is Kind.RETURNED:
            self._settle(Ending(State.SUCCEEDED, end.result), "reconcile: it happened")
        elif end.kind is not Kind.ABSENT:
            self.trial.history.append(f"reconcile: cannot tell ({end.message})")
        elif self.tool.spec.rerun_absent:
            self.approved = False  # an approval covers no second run
            self._move(State.QUEUED, f"reconcile: it did not happen ({end.message}); run again")
        else:
            self._move(State.FAILED, "reconcile: it did not happen", failure=Failure("did_not_happen", end.message))

    def _settle(self, ending: Ending, why: str) -> None:
        self._move(ending.state, why, failure=ending.failure)
        if ending.state is State.SUCCEEDED:
            self.trial.value = json.loads(ending.result)

    def _move(self, state: State, why: str, *, failure: Failure | None = None) -> None:
        self.trial.state, self.trial.failure = state, failure
        self.trial.history.append(f"{state}: {why}")

    def _run(self) -> Run:
        spec = self.tool.spec
        return Run(
            call=self.call,
            fence=self.trial.attempts,
            token=f"delivery-{self.trial.attempts}",
            worker="testing",
            tool=spec.name,
            version=spec.version,
            kind="function",
            arguments=json.dumps(self.arguments),
            idempotency_key=self.trial.idempotency_key,
            scope="testing",
            tenant="testing",
            turn_id=self.turn_id,
            call_id="call-1",
            position=0,
            effect=spec.effect,
            begins=spec.begins,
            attempt=self.trial.attempts,
            attempt_limit=spec.max_attempts + self.not_started,
            not_started=self.not_started,
            deadline_at=None,
            secret=False,
            cancel_requested=False,
        )


class _Channel:
    """The call channel of one attempt under a fault; see `call.CallChannel`."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self.begun = False
        self.died = False

    def begin(self) -> str:
        if self.fault is Fault.CRASH_BEFORE_EFFECT:
            self.died = True
            raise _Died
        if self.fault is Fault.CANCEL:
            return "cancel"
        self.begun = True
        return "begun"

    def progress(self, fraction: float | None, message: str) -> bool:
        return self.fault is not Fault.LEASE_STOLEN

    def standing(self) -> str:
        return {Fault.LEASE_STOLEN: "lost", Fault.CANCEL: "cancel"}.get(self.fault, "kept")


async def _awaited(found: Any) -> Any:
    return await found
