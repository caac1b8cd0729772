"""Executes a claimed call: prepare, ask the hook, enter the handler, report its end.

Holds the order of these steps, which the guarantee needs; knows no RQ, no queue and no signals.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

from ...store.crashpoints import reach
from ...store.model.errors import KeyringMissing
from ...store.model.outcomes import Failure
from ...store.model.specs import Effect
from ...store.model.states import State
from ...store.operations.runs import Ending, Run
from ..tools.authorize import UNCHECKED, Allow, Ask, Decision, Deny, Wait, consult
from ..tools.handler_result import End, Kind, named
from ..tools.options import Isolation
from ..tools.registry import Registry
from ..tools.tracebacks import traceback_of
from .attempt import Attempt, Wish, no_wish
from .persist import OperationRunner
from .policy import cancelled, effect_so_far
from .prepare import GiveBack, Ready, Refuse, prepare, refuse, strictest
from .run_session import RunSession, WorkerContext
from .runners import Abandoned, InThread, Runner
from .spans import HandlerSpan

_LOG = logging.getLogger("toolonce.worker")
_AWAITS_REPLICAS = GiveBack("replicas")


class Executor:
    """Executes runs, each in the thread that asks; one per process."""

    def __init__(
        self,
        context: WorkerContext,
        registry: Registry,
        in_thread: InThread,
        others: Mapping[Isolation, Runner],
        *,
        wait: Wait,
    ) -> None:
        self._context = context
        self._registry = registry
        self._in_thread = in_thread
        self._runners: dict[Isolation, Runner] = {**others, Isolation.THREAD: in_thread}
        self._wait = wait

    def execute(self, session: RunSession, sends: OperationRunner, wish: Wish) -> None:
        """Bring a claimed run, whose session was entered, to its end, whatever that is. Where that is an outcome, what
        is wished for may be the session's `following`.

        Raises:
            Abandoned: the handler, or the hook, overran the limit and this thread was replaced; it has to end.
        """
        if session.durable:
            self._carry_out(session, sends, wish)
        else:
            is_mutating = session.run.effect is Effect.MUTATING
            self._close(session, _AWAITS_REPLICAS if is_mutating else GiveBack(""), sends)

    def give_back(self, session: RunSession, sends: OperationRunner) -> None:
        """Queue a claimed run again, unentered: this worker runs nothing more."""
        self._close(session, GiveBack(""), sends)

    def _carry_out(self, session: RunSession, sends: OperationRunner, wish: Wish) -> None:
        ready = self._prepare(session.run)
        if session.run.cancel_requested:
            ready = Refuse(cancelled(session.run).ending)
        if not isinstance(ready, Ready):
            self._close(session, ready, sends, wish)
            return
        if not self._declare(session, ready, sends):
            self._close(session, _AWAITS_REPLICAS, sends)
            return
        attempt = Attempt(self._context, session, ready)
        barred = self._ask(attempt, ready) or _too_late(session, sends) or _stopped_meanwhile(session)
        if barred:
            self._close(session, barred, sends, wish)
            return
        end = self._enter(attempt)
        reach("after_effect")
        attempt.conclude(end, sends, wish)

    def _prepare(self, run: Run) -> Ready | GiveBack | Refuse:
        try:
            return prepare(run, self._registry, self._context.keyring)
        except KeyringMissing as error:
            _LOG.error("call %s cannot be run here: %s", run.call, error)
            return GiveBack("no_worker")
        except Exception as error:
            # The exception text may contain an argument that is secret.
            why = type(error).__name__ if run.secret else named(error)
            _LOG.error("call %s: its arguments cannot be read: %s", run.call, why, exc_info=not run.secret)
            return refuse(Failure("unreadable_arguments", f"the arguments cannot be read: {why}"))

    def _declare(self, session: RunSession, ready: Ready, sends: OperationRunner) -> bool:
        """Go on as the tool here declares it, where that is stricter than what the record says. False: too few replicas
        have that, and with it the claim."""
        run = session.run
        strict = strictest(run, ready.tool.spec)
        if strict is run:
            return True
        _LOG.warning("call %s: tool %s has become stricter since it was admitted", run.call, run.tool)
        return session.declare(strict, sends)

    def _ask(self, attempt: Attempt, ready: Ready) -> GiveBack | Refuse | None:
        rules, run = self._registry.rules(ready.tool), attempt.run
        not_run = "not run" if run.attempt == 1 else "not run again"

        def ask() -> Decision:
            return consult(rules, attempt.entry.call, ready.copy_values, approved=run.approved, wait=self._wait)

        def give_up(sends: OperationRunner) -> None:
            self._close(attempt.session, refuse(Failure("denied", f"{not_run}: {UNCHECKED} in time")), sends)

        said, in_time = self._in_thread.within(attempt, ask, give_up) if rules.hooks else (ask(), True)
        if not in_time:  # a hook that hangs holds no slot and no call forever
            raise Abandoned
        match said:
            case Allow():
                return None
            case Deny(reason):
                return refuse(Failure("denied", f"{not_run}: {reason}"))
            case Ask():
                return GiveBack("approval", ready.tool.spec.approval_ms)

    def _enter(self, attempt: Attempt) -> End:
        try:
            with HandlerSpan(attempt.run) as span:
                return span.ended(self._runners[attempt.entry.tool.isolation].enter(attempt))
        except Exception as error:  # a defect of toolonce, not of the handler: nobody knows how far it came
            secrets = attempt.entry.call.secrets
            trace = traceback_of(error, secrets)
            _LOG.error("call %s: running its handler failed\n%s", attempt.run.call, trace)
            return End(Kind.DIED, code="worker_failed", message=f"the worker failed: {named(error, secrets)}")

    def _close(
        self, session: RunSession, ended: GiveBack | Refuse, sends: OperationRunner, wish: Wish = no_wish
    ) -> None:
        """End a run that was never entered."""
        with session.last_word():
            match ended:
                case GiveBack(held, approval_ms):
                    session.give_back(sends, held, approval_ms)
                    self._context.counters.given_back += 1
                case Refuse(ending):
                    if ending.failure:
                        failure = replace(ending.failure, effect=effect_so_far(session.run))
                        ending = replace(ending, failure=failure)
                    session.settle(sends, ending, wish=wish())
                    self._context.counters.settled(session.run, ending.state)


def _too_late(session: RunSession, sends: OperationRunner) -> GiveBack | Refuse | None:
    """A process that was stopped between claim and entry must not enter: others have decided about the call. The store
    is told that nothing was entered, where it could not know."""
    if session.is_kept(sends):
        return None
    run = session.run
    _LOG.warning("call %s: its lease ran out before its handler was entered", run.call)
    if run.effect is Effect.MUTATING and not run.begins:
        why = f"attempt {run.attempt} was not run: the worker lost its lease before the handler was entered"
        return Refuse(Ending(State.FAILED, failure=Failure("not_entered", why)))
    return GiveBack("")


def _stopped_meanwhile(session: RunSession) -> Refuse | None:
    """A stop was requested while the hook ran: the handler is not entered."""
    return Refuse(cancelled(session.run).ending) if session.lease.standing == "cancel" else None
