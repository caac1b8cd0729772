"""Being told when a call of a turn came to rest: one connection for any number of waiters, and no polling.

Order matters: a waiter subscribes, then reads, then waits; what ends in between sets its event. When a connection is
lost every event is set, so that each waiter reads by itself, and gets an error where the server does not answer; the
events are set again once all channels are subscribed again. A silent connection is sent a PING: one that broke without
a notice would leave its waiters waiting forever.

A handler that waits for another call would hold a slot that this call may need: enough of them, and nothing moves any
more. So waiting is refused in handlers; submitting is not.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from ..model.errors import StoreMisuse
from .connection import Connection

RECONNECT_S = 0.2
"""Pause before subscribing again; a server that restarts is back within a second."""
SILENCE_S = 15.0
"""How long the connection may be silent before a PING, and how long the answer may take, in seconds."""
_RUNS_HANDLERS = ContextVar("toolonce_runs_handlers", default=False)


def mark_handler_context() -> None:
    """Mark this thread (and the tasks it starts) as one that runs handlers."""
    _RUNS_HANDLERS.set(True)


def refuse_to_wait() -> None:
    """Called before anything waits for the outcome of a call.

    Raises:
        StoreMisuse: this is a tool's handler.
    """
    if _RUNS_HANDLERS.get():
        raise StoreMisuse(
            "a tool's handler waits for another call: with all slots taken by such handlers nothing would move; "
            "submit it and return, or do its work directly"
        )


class Wakeups:
    """Subscriptions of one process. Thread-safe; the thread that listens starts with the first waiter.

    Attributes:
        losses: how often a connection was lost, or given up for its silence.
        pongs: how often a silent connection answered a PING.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._bells: dict[str, set[threading.Event]] = {}
        self._confirmed: set[str] = set()
        self._lock = threading.Lock()
        self._raw: Any = None
        self._thread: threading.Thread | None = None
        self._closed = threading.Event()
        self.losses = 0
        self.pongs = 0

    @contextlib.contextmanager
    def watch(self, *channels: str) -> Iterator[threading.Event]:
        """One event for these channels. It is set once each subscription stands, and at each message."""
        bell = threading.Event()
        for channel in channels:
            self._add(channel, bell)
        try:
            yield bell
        finally:
            for channel in channels:
                self._remove(channel, bell)

    def close(self) -> None:
        """End all subscriptions, and wake whoever waits."""
        self._closed.set()
        self._hang_up()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def _add(self, channel: str, bell: threading.Event) -> None:
        with self._lock:
            bells = self._bells.setdefault(channel, set())
            bells.add(bell)
            if channel in self._confirmed:
                bell.set()
            elif len(bells) == 1:
                self._send("SUBSCRIBE", channel)
            if self._thread is None:
                self._thread = threading.Thread(target=self._listen, name="toolonce-wakeups", daemon=True)
                self._thread.start()

    def _remove(self, channel: str, bell: threading.Event) -> None:
        with self._lock:
            bells = self._bells.get(channel, set())
            bells.discard(bell)
            if not bells:
                self._bells.pop(channel, None)
                self._confirmed.discard(channel)
                self._send("UNSUBSCRIBE", channel)

    def _send(self, *words: str) -> None:
        if self._raw is not None:
            with contextlib.suppress(RedisError, OSError):  # the listener notices, and subscribes again
                self._raw.send_command(*words)

    def _listen(self) -> None:
        while not self._closed.is_set():
            raw = self._connection.listener()
            try:
                self._connect(raw)
                while not self._closed.is_set():
                    self._hear(self._next(raw))
            except (RedisError, OSError, AttributeError):  # AttributeError: another thread closed it
                self.losses += 1
                self._hang_up()
                self._ring_all()
                self._closed.wait(RECONNECT_S)
        self._hang_up()

    def _next(self, raw: Any) -> Any:
        try:
            return raw.read_response(timeout=SILENCE_S, disconnect_on_error=False)
        except RedisTimeoutError:
            raw.send_command("PING")
            answer = raw.read_response(timeout=SILENCE_S)
            self.pongs += 1
            return answer

    def _connect(self, raw: Any) -> None:
        raw.connect()
        with self._lock:
            self._raw = raw
            self._confirmed.clear()
            if self._bells:
                raw.send_command("SUBSCRIBE", *self._bells)

    def _hang_up(self) -> None:
        with self._lock:
            raw, self._raw = self._raw, None
            if raw is not None:
                with contextlib.suppress(RedisError, OSError):
                    raw.disconnect()

    def _ring_all(self) -> None:
        with self._lock:
            for bells in self._bells.values() if not self._closed.is_set() else ():
                for bell in bells:
                    bell.set()

    def _hear(self, message: Any) -> None:
        if not isinstance(message, list) or len(message) < 2 or message[1] is None:
            return
        channel = message[1].decode()
        with self._lock:
            if message[0] == b"subscribe":
                self._confirmed.add(channel)
            if message[0] in (b"subscribe", b"message"):
                for bell in self._bells.get(channel, ()):
                    bell.set()
