"""The ways to run a handler: in the slot's thread, on the event loop. (A process of its own: `process_pool`.)

Each enforces the run limit in its way, and hands the end of a handler that was given up to `Attempt.late`.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from ..tools.handler_result import End, Kind
from .attempt import Attempt
from .invoke import enter, enter_async, overrun
from .persist import OperationRunner
from .service import ThreadService
from .timeouts import RunLimits

_LOG = logging.getLogger("toolonce.worker")
T = TypeVar("T")


class Runner(Protocol):
    """A way to run handlers; one per isolation."""

    def enter(self, attempt: Attempt) -> End:
        """Run the handler to its end, or to its limit.

        Raises:
            Abandoned: the limit passed and this very thread is still inside; someone else has concluded.
        """


class Abandoned(BaseException):
    """The handler of this thread was given up, and another thread has its slot; this one must end."""


class InThread:
    """In the caller's thread, at no cost. A thread cannot be stopped: at the limit its place is given to a new one,
    and it ends when its handler comes back.

    Args:
        replace: gives the place of a slot's thread to a new one, which first does what it is told.
    """

    def __init__(
        self, limits: RunLimits, replace: Callable[[threading.Thread, Callable[[OperationRunner], None]], None]
    ) -> None:
        self._limits = limits
        self._replace = replace

    def enter(self, attempt: Attempt) -> End:
        entry = attempt.entry
        end, in_time = self.within(attempt, lambda: enter(entry), lambda sends: attempt.conclude(overrun(entry), sends))
        if in_time:
            return end
        attempt.late(end)
        raise Abandoned

    def within(
        self, attempt: Attempt, work: Callable[[], T], give_up: Callable[[OperationRunner], None]
    ) -> tuple[T, bool]:
        """What `work` of the user's returns, and whether it came before the attempt's run limit. If not, this thread's
        place has gone to another one, which has done `give_up`, and this one has to end."""
        entry = attempt.entry
        if entry.call.limit_at is None:
            return work(), True
        first_word, thread = threading.Lock(), threading.current_thread()

        def at_limit() -> None:
            if first_word.acquire(blocking=False):
                _LOG.warning("call %s: %s; its thread is given up", attempt.run.call, overrun(entry).message)
                self._replace(thread, give_up)

        watched = self._limits.watch(entry.call.limit_at, at_limit)
        done = work()
        self._limits.let_go(watched)
        return done, first_word.acquire(blocking=False)


class OnLoop(ThreadService):
    """On the one event loop of the process. At the limit the task is cancelled; what it still says comes late. Where
    someone asks for a stop it is cancelled at once, and what it says then is its end."""

    def __init__(self) -> None:
        super().__init__("toolonce-loop")
        self._loop: asyncio.AbstractEventLoop

    def start(self) -> None:
        """See `Service.start`."""
        if self._thread is None:
            self._loop = asyncio.new_event_loop()
            super().start()

    def _ring(self) -> None:
        with suppress(RuntimeError):  # the loop is closed: the thread has ended
            self._loop.call_soon_threadsafe(self._loop.stop)

    def enter(self, attempt: Attempt) -> End:
        limit = attempt.entry.call.limit_at
        answer: Future[End] = Future()
        tasks: list[asyncio.Task[End]] = []
        stopped = threading.Event()

        def begin() -> None:
            tasks.append(self._loop.create_task(enter_async(attempt.entry, stopped.is_set)))
            tasks[0].add_done_callback(lambda task: answer.set_result(_end_of(task)))

        def stop() -> None:
            if not tasks[0].done():
                stopped.set()
                tasks[0].cancel()

        def ask_to_stop() -> None:
            with suppress(RuntimeError):  # the loop is closed: the process ends
                self._loop.call_soon_threadsafe(stop)

        self._loop.call_soon_threadsafe(begin)
        attempt.session.lease.when_stopped(ask_to_stop)
        try:
            return answer.result(None if limit is None else max(0.0, limit - time.monotonic()))
        except FutureTimeout:
            _LOG.warning("call %s: %s; its task is cancelled", attempt.run.call, overrun(attempt.entry).message)
            self._loop.call_soon_threadsafe(lambda: tasks[0].cancel())
            answer.add_done_callback(lambda done: _tell_late(attempt, done.result()))
            return overrun(attempt.entry)

    def wait_for(self, awaitable: Awaitable[Any], seconds: float | None) -> Any:
        """Run a coroutine of user code to its end, where async handlers run, too; for threads other than the loop's.

        Raises:
            TimeoutError: it took longer, and was cancelled.
            BaseException: what it raised.
        """

        async def awaited() -> Any:
            return await asyncio.wait_for(awaitable, seconds)

        return asyncio.run_coroutine_threadsafe(awaited(), self._loop).result()

    def _work(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()


def _end_of(task: asyncio.Task[End]) -> End:
    """These tasks return the end of the handler; a task that was itself cancelled never ran it."""
    if not task.cancelled():
        return task.result()
    return End(Kind.NOT_STARTED, code="not_started", message="stopped before its handler was entered")


def _tell_late(attempt: Attempt, end: End) -> None:
    # The loop never waits for the store: all other handlers would wait, too.
    threading.Thread(target=attempt.late, args=(end,), daemon=True).start()
