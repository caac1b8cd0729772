"""Runs invocations on a server: one round trip each, sent again by us when a reply is lost.

The client's own retries are off: redis-py re-sends after a lost reply, and pipelines and counters were then applied
twice. Every script of ours answers the same when it comes twice, so re-sending is ours to do, within a limit.
Threads share a pool of connections; a slot of a worker keeps one of its own (`dedicated`).
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from hiredis import pack_command
from redis.backoff import NoBackoff
from redis.exceptions import (
    AskError,
    AuthenticationError,
    ClusterCrossSlotError,
    ClusterDownError,
    NoPermissionError,
    NoScriptError,
    OutOfMemoryError,
    RedisError,
    ResponseError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.retry import Retry
from tenacity import RetryCallState, wait_random_exponential

from ..model.errors import StoreFull, StoreUnavailable, StoreUnsafe
from ..model.keys import Namespace
from ..model.times import seconds, wait_limit
from ..operations.operation import Acknowledged, Arg, Invocation, Operation, Query
from .urls import open_pool

T = TypeVar("T")
pack: Callable[[tuple[Arg, ...]], bytes] = pack_command  # type: ignore[assignment]  # its stub knows no variadic tuple
LOST = (RedisConnectionError, RedisTimeoutError, OSError)
CLUSTER = "this is a Redis Cluster node; toolonce needs one primary: a server without cluster mode, Sentinel or managed"
_CLUSTERED = (AskError, ClusterDownError, ClusterCrossSlotError, TryAgainError)  # MOVED is a kind of ASK there
_MISNAMED = "DB index is out of range"
_WAIT = wait_random_exponential(multiplier=0.02, max=1.0)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to keep trying, seconds: for one reply, and over all re-sends of one operation (0: none is sent again).

    Raises:
        ValueError: no such time.
    """

    reply: float = 10.0
    total: float = 20.0

    def __post_init__(self) -> None:
        seconds("the patience for a reply", self.reply)
        if wait_limit("the patience over all re-sends", self.total) is None:
            raise ValueError("the patience over all re-sends is not a number of seconds")


class Link:
    """One connection. Not for two threads at once; survives the server's restart."""

    def __init__(self, raw: Any, patience: Patience) -> None:
        self._raw = raw
        self._patience = patience

    def run(self, operation: Operation[T]) -> T:
        """Send one operation and read its answer.

        Raises:
            StoreUnavailable: no answer within the patience; safe to do again.
            StoreFull: the server has no memory left for this operation; nothing was written.
            StoreUnsafe: the server is a node of a Redis Cluster.
        """
        if isinstance(operation, Query):
            commands = operation.commands
            return operation.read(self._persist(lambda: self._exchange(commands)))
        if isinstance(operation, Acknowledged):
            script, wait = operation.invocation, operation.wait
            return operation.read(*self._persist(lambda: self._evaluate(script, wait)))
        invocation = operation
        return invocation.read(self._persist(lambda: self._evaluate(invocation)[0]))

    def command(self, *args: Arg) -> Any:
        """One plain command that may be sent again after a lost reply (reads, SUBSCRIBE-like, idempotent writes)."""
        return self._persist(lambda: self._exchange([args])[0])

    def once(self, *args: Arg, timeout: float | None = None) -> Any:
        """One plain command, never sent again (BLMOVE). Raises redis-py's errors as they are; the link stays usable."""
        try:
            return self._exchange([args], timeout=timeout)[0]
        except (*LOST, ResponseError) as error:
            if is_lost(error):
                self._raw.disconnect()
            raise

    def close(self) -> None:
        """Close this connection."""
        self._raw.disconnect()

    def _evaluate(self, invocation: Invocation[Any], *behind: tuple[Arg, ...]) -> list[Any]:
        try:
            return self._exchange([invocation.command(), *behind])
        except NoScriptError:
            return self._exchange([invocation.full_command(), *behind])

    def _exchange(self, commands: Sequence[tuple[Arg, ...]], timeout: float | None = None) -> list[Any]:
        """Several commands in one round trip."""
        raw, waiting = self._raw, {} if timeout is None else {"timeout": timeout}
        try:
            # Packed by hiredis itself: redis-py's packer looks at each argument in Python, a tenth of a worker's time.
            raw.send_packed_command((b"".join(map(pack, commands)),), check_health=False)
            return [raw.read_response(**waiting) for _ in commands]
        except BaseException as error:  # also a signal's: a reply left unread must never answer the next question
            if not isinstance(error, ResponseError) or len(commands) > 1:
                raw.disconnect()
            raise

    def _persist(self, attempt: Callable[[], Any]) -> Any:
        until = time.monotonic() + self._patience.total
        tries = 0
        while True:
            try:
                return attempt()
            except OutOfMemoryError as error:
                raise StoreFull("Redis is at its memory limit; free memory, or purge settled calls") from error
            except (*LOST, ResponseError) as error:
                if isinstance(error, ResponseError) and not is_lost(error):
                    raise unsafe(error) from error
                self._raw.disconnect()
                tries += 1
                wait = pause(tries)
                if time.monotonic() + wait > until:
                    raise StoreUnavailable(unserved(error)) from error
                time.sleep(wait)


class Connection:
    """A server and a namespace; runs invocations from any thread.

    Args:
        url: ``redis://``, ``rediss://``, ``unix://`` or ``redis+sentinel://``; see `urls`.
        namespace: this installation's share of the server.
    """

    def __init__(self, url: str, *, namespace: str = "toolonce", patience: Patience | None = None) -> None:
        self.url = url
        self.space = Namespace(namespace)
        self._patience = patience or Patience()
        self._idle: list[Link] = []
        self._process = os.getpid()
        self.pool = open_pool(
            url,
            retry=Retry(NoBackoff(), 0),
            socket_timeout=self._patience.reply,
            socket_connect_timeout=self._patience.reply,
            max_connections=10_000,
            protocol=2,  # one shape of replies on every server, and one round trip less to connect
        )

    @property
    def place(self) -> str:
        """Which store this is, for people."""
        return place_of(self.url, self.space)

    def run(self, operation: Operation[T]) -> T:
        """Run one operation; see `Link.run` for what it raises."""
        link = self._borrow()
        try:
            return link.run(operation)
        finally:
            self._idle.append(link)

    def command(self, *args: Arg) -> Any:
        """One plain command; see `Link.command`."""
        link = self._borrow()
        try:
            return link.command(*args)
        finally:
            self._idle.append(link)

    def dedicated(self) -> Link:
        """A connection of its own, outside the pool's turns; close it yourself."""
        return Link(self.pool.make_connection(), self._patience)

    def listener(self) -> Any:
        """A raw connection for subscriptions, not connected yet."""
        return self.pool.make_connection()

    def ping(self) -> None:
        """Ask once.

        Raises:
            StoreUnavailable: nobody answers at this URL.
        """
        link = Link(self.pool.make_connection(), Patience(self._patience.reply, 0))
        try:
            link.command("PING")
        except ResponseError as error:
            raise StoreUnavailable(refused(error)) from error
        finally:
            link.close()

    def close(self) -> None:
        """Close the idle connections, and those of the pool."""
        while self._idle:
            self._idle.pop().close()
        self.pool.disconnect()

    def _borrow(self) -> Link:
        """An idle link, or a new one, which connects when it first sends.

        redis-py's own pool takes half of a round trip's time to lend a connection. A link that the server has closed
        meanwhile fails at its first use, and is opened and used again like any other.
        """
        if self._process != os.getpid():  # forked: these sockets are the parent's
            self._idle, self._process = [], os.getpid()
        try:
            return self._idle.pop()
        except IndexError:
            return Link(self.pool.make_connection(), self._patience)


def is_lost(error: Exception) -> bool:
    """Whether this connection is of no use, and a new one may be: it is broken, or its server takes no writes because
    too few replicas are attached (min-replicas-to-write). Through Sentinel a new one finds another primary."""
    return isinstance(error, LOST) or str(error).startswith("NOREPLICAS")


def pause(tries: int) -> float:
    """Seconds to wait before the next re-send; grows, with jitter."""
    state = RetryCallState(retry_object=None, fn=None, args=(), kwargs={})  # type: ignore[arg-type]
    state.attempt_number = tries
    return _WAIT(state)


def unserved(error: RedisError | OSError) -> str:
    """Why there is no usable server at this URL, and what to do, in one line."""
    lines = str(error).splitlines() or [type(error).__name__]
    why = lines[0].partition(" : ")[0].rstrip(".")  # of a missing primary: what follows shows whole connection pools
    if any(isinstance(cause, AuthenticationError) for cause in (error, error.__cause__)):  # asyncio's wraps its own
        return f"Redis refuses the login ({why}): check user and password in the URL, redis://USER:PASSWORD@HOST:6379/0"
    if " connecting to " in why:
        why += (
            "; start a server there, or name another: --redis URL, url= or TOOLONCE_REDIS_URL; without any of them, "
            "`toolonce up` runs one for this project"
        )
    if why.startswith("NOREPLICAS"):
        return "Redis takes no writes: fewer replicas are attached than its min-replicas-to-write asks for"
    return f"no answer from Redis: {why}"


def unsafe(error: ResponseError) -> ResponseError | StoreUnsafe | StoreUnavailable:
    """Errors of a cluster node, and errors that show a wrong URL, as errors of the store; any other error unchanged."""
    if str(error).startswith(_MISNAMED):
        return StoreUnavailable(f"{refused(error)}; see the end of the URL: redis://HOST:6379/DATABASE")
    if "unknown command 'SENTINEL'" in str(error):
        return StoreUnavailable(
            "no Sentinel answers there, but a server; its own URL begins with redis:// or rediss://"
        )
    is_clustered = isinstance(error, _CLUSTERED) or "keys that do not hash to the same slot" in str(error)
    return StoreUnsafe(CLUSTER) if is_clustered else error


def refused(error: RedisError) -> str:
    """The message for the error of a server that answers and refuses, with what to do where that is known."""
    if isinstance(error, NoPermissionError):
        return f"Redis refuses: {error}; give this user the rights of its role, see ops/deploy/users.acl"
    return f"Redis refuses: {error}"


def place_of(url: str, space: Namespace) -> str:
    """The store as messages name it, since a wrong store is the first reason to find nothing."""
    return f"namespace {space.name} at {without_password(url)}"


def without_password(url: str) -> str:
    """A URL as it may be shown and logged; also one that cannot be read."""
    shown = re.sub(r"(?<=://)[^/].*@", "***@", url)
    return re.sub(r"(?<=password=)[^&]*", "***", shown)
