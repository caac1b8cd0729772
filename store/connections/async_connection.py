"""The same as `connection`, over asyncio: runs invocations, and sends them again when a reply is lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any, TypeVar

from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, OutOfMemoryError, ResponseError

from ..model.errors import StoreFull, StoreUnavailable
from ..model.keys import Namespace
from ..operations.operation import Acknowledged, Arg, Invocation, Operation, Query
from .connection import LOST, Patience, is_lost, pack, pause, place_of, unsafe, unserved
from .urls import open_async_pool

T = TypeVar("T")


class AsyncConnection:
    """A server and a namespace, for one event loop.

    Args:
        connections: most connections at once; more operations than that wait their turn.
    """

    def __init__(
        self, url: str, *, namespace: str = "toolonce", patience: Patience | None = None, connections: int = 16
    ) -> None:
        self.url = url
        self.space = Namespace(namespace)
        self._patience = patience or Patience()
        self._turns = asyncio.Semaphore(connections)
        self._pool: Any = open_async_pool(
            url,
            retry=Retry(NoBackoff(), 0),
            socket_timeout=self._patience.reply,
            socket_connect_timeout=self._patience.reply,
            max_connections=connections + 8,
            protocol=2,
        )

    @property
    def place(self) -> str:
        """Which store this is, for people."""
        return place_of(self.url, self.space)

    async def run(self, operation: Operation[T]) -> T:
        """Run one operation.

        Raises:
            StoreUnavailable: no answer within the patience; safe to do again.
            StoreFull: the server has no memory left for this operation; nothing was written.
            StoreUnsafe: the server is a node of a Redis Cluster.
        """
        if isinstance(operation, Query):
            return operation.read(await self._persist(*operation.commands))
        if isinstance(operation, Acknowledged):
            return operation.read(*await self._evaluate(operation.invocation, operation.wait))
        return operation.read((await self._evaluate(operation))[0])

    async def command(self, *args: Arg) -> Any:
        """One plain command that may be sent again after a lost reply."""
        return (await self._persist(args))[0]

    def listener(self) -> Any:
        """A raw connection for subscriptions, not connected yet; it may stay silent for any time."""
        raw = self._pool.make_connection()
        raw.socket_timeout = None
        return raw

    async def close(self) -> None:
        """Close all connections of the pool."""
        await self._pool.disconnect()

    async def _evaluate(self, invocation: Invocation[Any], *behind: tuple[Arg, ...]) -> list[Any]:
        try:
            return await self._persist(invocation.command(), *behind)
        except NoScriptError:
            return await self._persist(invocation.full_command(), *behind)

    async def _persist(self, *commands: tuple[Arg, ...]) -> list[Any]:
        until = time.monotonic() + self._patience.total
        tries = 0
        while True:
            try:
                async with self._turns:
                    return await self._exchange(commands)
            except OutOfMemoryError as error:
                raise StoreFull("Redis is at its memory limit; free memory, or purge settled calls") from error
            except NoScriptError:
                raise
            except (*LOST, ResponseError) as error:
                if isinstance(error, ResponseError) and not is_lost(error):
                    raise unsafe(error) from error
                tries += 1
                wait = pause(tries)
                if time.monotonic() + wait > until:
                    raise StoreUnavailable(unserved(error)) from error
                await asyncio.sleep(wait)

    async def _exchange(self, commands: Sequence[tuple[Arg, ...]]) -> list[Any]:
        """Several commands in one round trip."""
        raw = await self._pool.get_connection()
        healthy = False
        try:
            await raw.send_packed_command(b"".join(map(pack, commands)))
            try:
                replies = [await raw.read_response() for _ in commands]
            except (NoScriptError, OutOfMemoryError):
                healthy = len(commands) == 1
                raise
            healthy = True
            return replies
        finally:
            if not healthy:
                await raw.disconnect()  # a cancelled or failed read would leave a stale reply for the next user
            await self._pool.release(raw)
