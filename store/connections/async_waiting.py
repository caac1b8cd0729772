"""The same as `waiting`, over asyncio: one connection tells any number of waiters when a call came to rest."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from .async_connection import AsyncConnection
from .waiting import RECONNECT_S, SILENCE_S


class AsyncWakeups:
    """Subscriptions of one event loop. The task that listens starts with the first waiter."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection
        self._bells: dict[str, set[asyncio.Event]] = {}
        self._confirmed: set[str] = set()
        self._raw: Any = None
        self._task: asyncio.Task[None] | None = None
        self._sending = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def watch(self, *channels: str) -> AsyncIterator[asyncio.Event]:
        """One event for these channels. It is set once a subscription stands, and at each message."""
        bell = asyncio.Event()
        try:
            for channel in channels:
                await self._add(channel, bell)
            yield bell
        finally:
            for channel in channels:
                await self._remove(channel, bell)

    async def close(self) -> None:
        """End all subscriptions."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _add(self, channel: str, bell: asyncio.Event) -> None:
        bells = self._bells.setdefault(channel, set())
        bells.add(bell)
        if self._task is None:
            self._task = asyncio.create_task(self._listen(), name="toolonce-wakeups")
        if channel in self._confirmed:
            bell.set()
        elif len(bells) == 1:
            await self._send("SUBSCRIBE", channel)

    async def _remove(self, channel: str, bell: asyncio.Event) -> None:
        bells = self._bells.get(channel, set())
        bells.discard(bell)
        if not bells and self._bells.pop(channel, None) is not None:
            self._confirmed.discard(channel)
            await self._send("UNSUBSCRIBE", channel)

    async def _send(self, *words: str) -> None:
        async with self._sending:
            if self._raw is not None:
                with contextlib.suppress(RedisError, OSError):  # the listener notices, and subscribes again
                    await self._raw.send_command(*words)

    async def _listen(self) -> None:
        while True:
            raw = self._connection.listener()
            try:
                await self._connect(raw)
                while True:
                    self._hear(await self._next(raw))
            except (RedisError, OSError):
                await self._hang_up(raw)
                for bell in {bell for bells in self._bells.values() for bell in bells}:
                    bell.set()  # each waiter reads by itself, and gets an error where the server does not answer
                await asyncio.sleep(RECONNECT_S)
            finally:
                await self._hang_up(raw)

    async def _hang_up(self, raw: Any) -> None:
        self._raw = None  # first: a command on a closed connection would connect it again
        with contextlib.suppress(RedisError, OSError):
            await raw.disconnect()

    async def _next(self, raw: Any) -> Any:
        try:
            return await raw.read_response(timeout=SILENCE_S, disconnect_on_error=False)
        except RedisTimeoutError:
            await self._send("PING")
            return await raw.read_response(timeout=SILENCE_S)

    async def _connect(self, raw: Any) -> None:
        await raw.connect()
        async with self._sending:
            self._raw = raw
            self._confirmed.clear()
            if self._bells:
                await raw.send_command("SUBSCRIBE", *self._bells)

    def _hear(self, message: Any) -> None:
        if not isinstance(message, list) or len(message) < 2 or message[1] is None:
            return
        channel = message[1].decode()
        if message[0] == b"subscribe":
            self._confirmed.add(channel)
        if message[0] in (b"subscribe", b"message"):
            for bell in self._bells.get(channel, ()):
                bell.set()
