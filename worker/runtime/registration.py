"""Shows the worker to RQ: registration, heartbeat and the command channel, on RQ 3.0's own worker class.

RQ's loop, its execution and its signal handlers are not used; its maintenance is not run. Knows nothing of calls.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from redis import Redis
from redis.exceptions import OutOfMemoryError, RedisError
from rq.serializers import JSONSerializer
from rq.utils import now, utcformat
from rq.worker import BaseWorker, WorkerStatus

from ...store.connections.connection import Connection
from ...store.connections.urls import open_pool
from ...store.model.errors import StoreError
from ...store.model.keys import Namespace
from ..execution.service import ThreadService
from ..maintenance.process_identity import ENDED
from ..tools.errors import NotThroughRQ
from .rq_job import Pointer
from .worker_status import FIELD, LISTED_S, Report

_LOG = logging.getLogger("toolonce.worker")
BEAT_S = 1.0
"""What is shown is at most this old; nothing is written while nothing changes, but for a heartbeat."""
SIGN_OF_LIFE_S = 5.0
"""How often a worker in which nothing changes sends a heartbeat, in seconds; after three missing ones it counts as
silent."""
RQ_SPARE_S = 60
"""What RQ adds to a worker's lifetime itself (3.0: BaseWorker.register_birth)."""
IDENTITY_KEPT_S = 86_400
"""How long it is known which process a worker was: longer than any reconcile waits for it to be gone."""
LISTEN_S = 0.5
"""One wait for a command of RQ's channel."""


class RegisteredWorker(BaseWorker):
    """This process as RQ's worker class. It never dequeues: of its queues only the names are used.

    RQ reads its key prefix once, at import, for the whole process. This class takes the namespace's instead in all that
    it writes, so that one process may hold workers of several namespaces, and RQ of its own beside them.
    """

    job_class = Pointer
    space: Namespace
    stops: tuple[str, Callable[[], None]] | None = None
    """The channel on which this worker hears that a stop was asked for, and what it does then."""

    @classmethod
    def create(cls, connection: Connection, queues: Sequence[str], name: str) -> RegisteredWorker:
        """Make one with a client of its own: RQ changes the timeouts of the client it gets.

        Raises:
            redis.RedisError: the server does not answer.
        """
        names = [connection.space.queue_name(queue) for queue in queues]
        client = Redis(connection_pool=open_pool(connection.url))
        worker = cls(names, name=name, connection=client, worker_ttl=LISTED_S - RQ_SPARE_S, serializer=JSONSerializer)
        worker.space = connection.space
        worker.redis_workers_keys = connection.space.rq_workers
        return worker

    identity: tuple[str, str] | None = None
    """The key that says which process this worker is, and its value."""

    @property
    def key(self) -> str:
        return self.space.rq_worker(self.name)

    @property
    def executions_key(self) -> str:
        return f"{self.key}:executions"

    @property
    def pubsub_channel_name(self) -> str:
        return self.space.rq_channel(self.name)

    def register_birth(self) -> None:
        """As RQ's, which takes the lists of workers by queue from the prefix of the process (RQ 3.0).

        Raises:
            ValueError: a worker of this name lives.
        """
        if self.connection.exists(self.key) and not self.connection.hexists(self.key, "death"):
            raise ValueError(f"There exists an active worker named {self.name!r} already")
        self.birth_date = self.last_heartbeat = now()
        with self.connection.pipeline() as pipe:
            pipe.delete(self.key)
            pipe.hset(self.key, mapping=self.serialize())
            for listed in self._listed_in():
                pipe.sadd(listed, self.key)
            pipe.expire(self.key, LISTED_S)
            pipe.execute()

    def register_death(self) -> None:
        """As RQ's, for the same reason."""
        with self.connection.pipeline() as pipe:
            for listed in self._listed_in():
                pipe.srem(listed, self.key)
            pipe.hset(self.key, "death", utcformat(now()))
            pipe.expire(self.key, RQ_SPARE_S)
            pipe.delete(self.executions_key)
            pipe.execute()

    def _listed_in(self) -> list[str]:
        return [self.space.rq_workers, *(self.space.rq_workers_of(queue) for queue in self.queue_names())]

    def work(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotThroughRQ("this worker has a loop of its own; start it with `toolonce work`")

    def execute_job(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotThroughRQ("RQ executes nothing here")

    def enlist(self) -> None:
        """Appear in RQ's lists, and listen to its commands. On a server that is over its memory limit the worker works
        unlisted; its heartbeat lists it once there is room."""
        try:
            self.register_birth()
            self.set_state(WorkerStatus.STARTED)
        except OutOfMemoryError as error:
            _LOG.warning("this worker is not listed for now: %s", error)
        self.subscribe()

    def subscribe(self) -> None:
        """As RQ's, but in short waits: a drain waits for the end of one, which were 60 s while a server comes back."""
        pubsub: Any = self.connection.pubsub()  # type: ignore[no-untyped-call]
        pubsub.subscribe(**{self.pubsub_channel_name: self.handle_payload})
        if self.stops:
            channel, hear = self.stops
            pubsub.subscribe(**{channel: lambda _message: hear()})
        listening: Any = pubsub.run_in_thread(sleep_time=LISTEN_S, daemon=True, exception_handler=_listen_again)
        self.pubsub, self.pubsub_thread = pubsub, listening

    def beat(self, report: Report) -> None:
        """Publish what this process is doing, for RQ's tools and for `toolonce workers`: one round trip."""
        state = WorkerStatus.BUSY if report.busy else WorkerStatus.IDLE
        with self.connection.pipeline(transaction=False) as pipe:
            self.heartbeat(LISTED_S, pipeline=pipe)
            pipe.hset(self.key, mapping=self._shown(report, state))
            pipe.sadd(self.redis_workers_keys, self.key)
            if self.identity:
                pipe.set(*self.identity, ex=IDENTITY_KEPT_S)
            pipe.execute()
        self._state = state

    def leave(self, *, is_idle: bool) -> None:
        """Disappear from RQ's lists. Only where no handler is left inside does that say that this process is gone."""
        try:
            if self.identity and is_idle:
                self.connection.set(self.identity[0], ENDED, ex=IDENTITY_KEPT_S)
            self.teardown()  # type: ignore[no-untyped-call]
        except (RedisError, OSError) as error:
            _LOG.warning("could not sign off; the registration lapses by itself: %s", error)
        self.connection.close()

    def handle_payload(self, message: Any) -> None:
        """Of RQ's commands only shutdown is obeyed, as a drain: there is no job of RQ's to stop."""
        try:
            command = json.loads(message["data"]).get("command")
        except (ValueError, TypeError, AttributeError):
            command = None
        if command == "shutdown":
            os.kill(os.getpid(), signal.SIGINT)
        else:
            _LOG.warning("ignored a command of RQ's channel: %.80r", command)

    def _shown(self, report: Report, state: WorkerStatus) -> dict[Any, Any]:
        return {
            **self.serialize(),
            "state": state.value,
            "successful_job_count": report.succeeded,
            "failed_job_count": report.failed,
            FIELD: report.to_json(),
        }


def _listen_again(error: BaseException, *_: Any) -> None:
    """The server is away: the channel is subscribed again once it is back."""
    if not isinstance(error, (RedisError, OSError)):
        raise error
    time.sleep(LISTEN_S)


class Registration(ThreadService):
    """The service that lists the worker in RQ: it signs on, sends heartbeats (regularly, and at once after a change)
    and signs off.

    Args:
        create: makes the RQ worker of this process.
        report: what is shown of it.
        is_idle: whether no handler is left inside.
        show: brings RQ's registries up to date, with each heartbeat.
    """

    def __init__(
        self,
        create: Callable[[], RegisteredWorker],
        report: Callable[[], Report],
        is_idle: Callable[[], bool],
        show: Callable[[], None],
    ) -> None:
        super().__init__("toolonce-registration")
        self._create = create
        self._report = report
        self._is_idle = is_idle
        self._show = show
        self._worker: RegisteredWorker | None = None

    def start(self) -> None:
        """Sign on.

        Raises:
            redis.RedisError: the server does not answer.
            ValueError: a worker of this name lives.
        """
        if self._thread:
            return
        self._worker = self._create()
        self._worker.enlist()
        with suppress(OutOfMemoryError):  # the next beat may find room
            self._worker.beat(self._report())
        super().start()

    def stop(self, deadline: float) -> None:
        """Sign off."""
        super().stop(deadline)
        worker, self._worker = self._worker, None
        if worker:
            with suppress(StoreError, RedisError, OSError):  # what is left of it, recovery removes
                self._show()
            worker.leave(is_idle=self._is_idle())

    def _work(self) -> None:
        worker, shown, silent_s = self._worker, self._report(), 0.0
        while worker and not self._bell.wait(BEAT_S):
            silent_s += BEAT_S
            now = self._report()
            try:
                self._show()
                if now != shown or silent_s >= SIGN_OF_LIFE_S:
                    worker.beat(now)
                    shown, silent_s = now, 0.0
            except (StoreError, RedisError, OSError) as error:
                _LOG.debug("no heartbeat: %s", error)
