"""Read-backs: unknown calls are settled by asking the tool's own ``reconcile`` whether the effect is there.

Decides what an answer means and how long to wait before asking again. A read-back only looks; it may be asked twice.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from typing import Any

from ..store.connection import Connection
from ..store.errors import StoreError
from ..store.execution import Run
from ..store.keyring import Keyring
from ..store.operators import Done, Seen, Word, resolve, retry
from ..store.outcomes import Failure
from ..store.recovery import ReadBack, ask_later, readback
from ..store.states import Operation, State
from .call import Call, context_of
from .ends import described, named
from .entering import encoded
from .errors import DidNotHappen
from .preparing import Ready, prepare
from .registry import Registry

_LOG = logging.getLogger("toolonce.worker")
_EVERY_S = 1.0
_ASK_LEASE_MS = 60_000
_RECONCILE = Operation.RECONCILE
_FIRST_WAIT_MS, _LONGEST_WAIT_MS = 1_000, 600_000


class ReadBacks:
    """The thread of one worker that asks. One call at a time: unknown calls are rare, and nothing waits behind them."""

    def __init__(self, connection: Connection, registry: Registry, keyring: Keyring, *, worker: str) -> None:
        self._connection = connection
        self._registry = registry
        self._keyring = keyring
        self._worker = worker
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._ask_for_ever, name="toolonce-readback", daemon=True)

    def start(self) -> None:
        if self._tools:
            self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(timeout=2)

    def once(self) -> bool:
        """Ask about one call; False where there is none.

        Raises:
            StoreError: the store could not be asked.
        """
        found = self._connection.run(
            readback(self._connection.space, self._tools, lease_ms=_ASK_LEASE_MS, sweeper=self._worker)
        )
        if found is None:
            return False
        try:
            self._settle(found)
        except StoreError:
            raise
        except Exception as error:
            why = type(error).__name__ if found.run.secret else named(error)  # its text may repeat a secret
            self._later(found, f"the read-back could not be run: {why}")
        return True

    @property
    def _tools(self) -> list[str]:
        return [tool.name for tool in self._registry if tool.readback]

    def _settle(self, found: ReadBack) -> None:
        run = found.run
        ready = prepare(run, self._registry, self._keyring)
        if not isinstance(ready, Ready):
            self._later(found, "the call does not fit the tool of this worker")
            return
        try:
            value = _ask(ready, context_of(run, None, _NoLine(), ready.secrets))
        except DidNotHappen as said:
            self._absent(run, ready, described(said, ready.secrets))
        except Exception as error:
            self._later(found, named(error, ready.secrets))
        else:
            text, _ = ready.protect(encoded(ready.tool, value), run, self._keyring)
            self._tell(run, resolve(self._space, _seen(run), text, self._word("it happened"), operation=_RECONCILE))

    def _absent(self, run: Run, ready: Ready, why: str) -> None:
        word = self._word(why or "it did not happen")
        if ready.tool.spec.rerun_absent:
            self._tell(run, retry(self._space, _seen(run), word, operation=_RECONCILE))
            return
        failure = Failure("did_not_happen", f"read back: the effect did not happen{f': {why}' if why else ''}")
        self._tell(run, resolve(self._space, _seen(run), failure, word, operation=_RECONCILE))

    def _later(self, found: ReadBack, heard: str) -> None:
        wait_ms = min(_LONGEST_WAIT_MS, _FIRST_WAIT_MS * 2 ** min(found.asked, 20))
        _LOG.info("call %s is still unknown (%s); asked again in %d s", found.run.call, heard, wait_ms // 1000)
        self._connection.run(ask_later(self._space, found.run.call, wait_ms=wait_ms, heard=heard))

    def _tell(self, run: Run, invocation: Any) -> None:
        done: Done = self._connection.run(invocation)
        _LOG.info("call %s was unknown; read back: %s %s", run.call, done.verdict, done.detail)

    @property
    def _space(self) -> Any:
        return self._connection.space

    def _word(self, reason: str) -> Word:
        return Word(actor=f"reconcile/{self._worker}", reason=reason)

    def _ask_for_ever(self) -> None:
        while not self._ended.wait(_EVERY_S):
            try:
                while not self._ended.is_set() and self.once():
                    pass
            except StoreError as error:
                _LOG.warning("read-backs wait for the store: %s", error)
            except Exception:
                _LOG.exception("a read-back failed; the next one tries again")


def _seen(run: Run) -> Seen:
    return Seen(run.call, State.UNKNOWN, run.fence)


def _ask(ready: Ready, call: Call) -> Any:
    tool = ready.tool
    assert tool.readback
    context = {"call": call} if tool.readback_takes_call else {}
    said = tool.readback(**ready.values, **context)
    return asyncio.run(_awaited(said)) if inspect.isawaitable(said) else said


async def _awaited(said: Any) -> Any:
    return await said


class _NoLine:
    """A read-back looks at something that has ended: it has nothing to begin and no lease to lose."""

    def begin(self) -> str:
        return "lost"

    def progress(self, fraction: float | None, message: str) -> bool:
        return True

    def standing(self) -> str:
        return "kept"
