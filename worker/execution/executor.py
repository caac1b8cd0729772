"""Executing a claimed call: prepare, ask the hook, enter the handler, say how it ended.

Holds the order of these steps, which the guarantee needs; knows no RQ, no queue and no signals.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

from ...store.crashpoints import reach
from ...store.model.errors import KeyringMissing, StoreUnavailable
from ...store.model.outcomes import Failure
from ...store.model.specs import Effect
from ...store.model.states import State
from ...store.operations.runs import Ending, Run, declare, release
from ..tools.authorize import UNCHECKED, Allow, Ask, Decision, Deny, Wait, consult
from ..tools.handler_result import End, Kind, named
from ..tools.registry import Registry
from ..tools.tool import Isolation
from ..tools.tracebacks import traceback_of
from .attempt import Attempt, Desk
from .lease import Hold
from .persist import Sends
from .policy import cancelled, effect_so_far
from .prepare import GiveBack, Ready, Refuse, prepare, refuse, strictest
from .runners import Abandoned, InThread, Runner
from .spans import HandlerSpan

_LOG = logging.getLogger("toolonce.worker")
_AWAITS_REPLICAS = GiveBack("replicas")


class Executor:
    """Executes runs, each in the thread that asks; one per process."""

    def __init__(
        self, desk: Desk, registry: Registry, in_thread: InThread, others: Mapping[Isolation, Runner], *, wait: Wait
    ) -> None:
        self._desk = desk
        self._registry = registry
        self._in_thread = in_thread
        self._runners: dict[Isolation, Runner] = {**others, Isolation.THREAD: in_thread}
        self._wait = wait

    def execute(self, run: Run, sends: Sends, *, asked_at: float, enough: bool = True) -> None:
        """Bring a run to its end, whatever that is; `asked_at` is the monotonic time at which its claim was sent, and
        `enough` whether enough replicas have the claim.

        Raises:
            Abandoned: the handler, or the hook, overran the limit and this thread was replaced; it has to end.
        """
        hold = self._desk.leases.hold(run, asked_at)
        try:
            if not enough:
                self._close(run, hold, _AWAITS_REPLICAS if run.effect is Effect.MUTATING else GiveBack(""), sends)
            else:
                self._carry_out(run, hold, sends)
        finally:
            self._desk.leases.drop(hold)  # whatever happened here: a lease that nobody works under must run out

    def _carry_out(self, run: Run, hold: Hold, sends: Sends) -> None:
        ready = self._prepare(run)
        if run.cancel_requested:
            ready = Refuse(cancelled(run).ending)
        if not isinstance(ready, Ready):
            self._close(run, hold, ready, sends)
            return
        run, enough = self._as_declared(run, hold, ready, sends)
        if not enough:
            self._close(run, hold, _AWAITS_REPLICAS, sends)
            return
        attempt = Attempt(self._desk, run, hold, ready)
        barred = self._ask(attempt, ready) or self._too_late(hold, sends) or _stopped_meanwhile(hold)
        if barred:
            self._close(run, hold, barred, sends)
            return
        end = self._enter(attempt)
        reach("after_effect")
        attempt.conclude(end, sends)

    def _prepare(self, run: Run) -> Ready | GiveBack | Refuse:
        try:
            return prepare(run, self._registry, self._desk.keyring)
        except KeyringMissing as error:
            _LOG.error("call %s cannot be run here: %s", run.call, error)
            return GiveBack("no_worker")
        except Exception as error:
            # The words of whoever could not read them may repeat them.
            why = type(error).__name__ if run.secret else named(error)
            _LOG.error("call %s: its arguments cannot be read: %s", run.call, why, exc_info=not run.secret)
            return refuse(Failure("unreadable_arguments", f"the arguments cannot be read: {why}"))

    def _as_declared(self, run: Run, hold: Hold, ready: Ready, sends: Sends) -> tuple[Run, bool]:
        """The run as the tool here declares it, where that is stricter than what the record says; and whether enough
        replicas have that, and with it the claim."""
        strict, enough = strictest(run, ready.tool.spec), True
        if strict is run:
            return run, True
        _LOG.warning("call %s: tool %s has become stricter since it was admitted", run.call, run.tool)
        request = declare(self._desk.connection.space, strict)
        try:
            word, enough = self._desk.replicas.write(sends, request, what=f"the declaration of call {run.call}")
        except StoreUnavailable as error:
            _LOG.error("call %s: %s", run.call, error)
            word = "lost"
        if word == "lost":
            hold.standing = "lost"
            return run, True
        hold.run = strict
        return strict, enough or strict.effect is not Effect.MUTATING

    def _ask(self, attempt: Attempt, ready: Ready) -> GiveBack | Refuse | None:
        rules, run = self._registry.rules(ready.tool), attempt.run
        not_run = "not run" if run.attempt == 1 else "not run again"

        def ask() -> Decision:
            return consult(rules, attempt.entry.call, ready.copy_values, approved=run.approved, wait=self._wait)

        def give_up(sends: Sends) -> None:
            self._close(run, attempt.hold, refuse(Failure("denied", f"{not_run}: {UNCHECKED} in time")), sends)

        said, in_time = self._in_thread.within(attempt, ask, give_up) if rules.hooks else (ask(), True)
        if not in_time:  # a hook that hangs holds no slot and no call for ever
            raise Abandoned
        match said:
            case Allow():
                return None
            case Deny(reason):
                return refuse(Failure("denied", f"{not_run}: {reason}"))
            case Ask():
                return GiveBack("approval", ready.tool.spec.approval_ms)

    def _too_late(self, hold: Hold, sends: Sends) -> GiveBack | Refuse | None:
        """A process that was stopped between claim and entry must not enter: others have decided what becomes of the
        call. Where they could not know that nothing was entered, they are told.
        """
        run, desk = hold.run, self._desk
        try:
            if desk.leases.is_kept(hold, lambda request: desk.persistence.write(sends, request, what="a lease")):
                return None
        except StoreUnavailable as error:
            _LOG.error("call %s: %s", run.call, error)
        _LOG.warning("call %s: its lease ran out before its handler was entered", run.call)
        if run.effect is Effect.MUTATING and not run.begins:
            why = f"attempt {run.attempt} was not run: the worker lost its lease before the handler was entered"
            return Refuse(Ending(State.FAILED, failure=Failure("not_entered", why)))
        return GiveBack("")

    def _enter(self, attempt: Attempt) -> End:
        try:
            with HandlerSpan(attempt.run) as span:
                return span.ended(self._runners[attempt.entry.tool.isolation].enter(attempt))
        except Exception as error:  # ours, not the handler's: nobody knows how far it came
            secrets = attempt.entry.call.secrets
            trace = traceback_of(error, secrets)
            _LOG.error("call %s: running its handler failed\n%s", attempt.run.call, trace)
            return End(Kind.DIED, code="worker_failed", message=f"the worker failed: {named(error, secrets)}")

    def _close(self, run: Run, hold: Hold, ended: GiveBack | Refuse, sends: Sends) -> None:
        """End a run that was never entered."""
        desk = self._desk
        space = desk.connection.space
        hold.ending = True
        try:
            match ended:
                case GiveBack(held, approval_ms):
                    given = release(space, run, held=held, approval_ms=approval_ms)
                    desk.persistence.write(sends, given, what=f"call {run.call}, given back")
                    desk.tally.given_back += 1
                case Refuse(ending):
                    if ending.failure:
                        ending = replace(ending, failure=replace(ending.failure, effect=effect_so_far(run)))
                    desk.replicas.settle(sends, run, ending)
                    desk.tally.settled(ending.state)
        except StoreUnavailable as error:
            _LOG.error("call %s: %s", run.call, error)
        finally:
            desk.leases.drop(hold)


def _stopped_meanwhile(hold: Hold) -> Refuse | None:
    """Someone asked for a stop while the hook was asked: what has not been entered is not entered any more."""
    return Refuse(cancelled(hold.run).ending) if hold.standing == "cancel" else None
