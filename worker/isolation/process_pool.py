"""Handlers in processes of their own, as the worker sees them: a child process per entry, killed at the run limit.

The lease is renewed by the worker, so a handler that holds the interpreter cannot lose it. Decides what the death of
a child process means; what a child process does is `fork_server`'s.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import threading
import time
from contextlib import suppress
from dataclasses import fields
from multiprocessing.connection import Connection as Pipe
from typing import Any

from ...store.model.errors import StoreError
from ..execution.attempt import Attempt
from ..execution.invoke import HandlerEntry, overrun
from ..tools.call import Call
from ..tools.errors import NotStarted
from ..tools.handler_result import End, Kind
from ..tools.options import Isolation
from ..tools.registry import Registry
from . import fork_server

_LOG = logging.getLogger("toolonce.worker")
_LOOK_S = 0.01
_CONTEXT = tuple(item.name for item in fields(Call) if item.name not in ("channel", "secrets"))


class ProcessPool:
    """The fork server and the living child processes.

    Attributes:
        broken: the fork server is gone; tools that need processes cannot run here any more.
    """

    def __init__(self, registry: Registry) -> None:
        self.broken = False
        self._registry = registry
        self._orders: socket.socket | None = None
        self._server = 0
        self._lock = threading.Lock()
        self._is_gone = False
        self._living: set[int] = set()

    def start(self) -> None:
        """Fork the fork server, if any tool needs it. Call it while there is one thread."""
        if self._server or not any(tool.isolation is Isolation.PROCESS for tool in self._registry):
            return
        ours, theirs = socket.socketpair()
        worker = os.getpid()
        server = os.fork()
        if server == 0:
            ours.close()
            try:
                fork_server.serve(theirs, self._registry, worker)
            finally:
                os._exit(1)
        theirs.close()
        self._server, self._orders = server, ours

    def stop(self, deadline: float) -> None:
        """End the fork server; its child processes end with it."""
        if self._orders:
            self._orders.close()
            self._orders = None
            self.wait(deadline)

    def wait(self, deadline: float) -> bool:
        """See `Service.wait`: whether the fork server has ended."""
        while self._server and not self._has_ended():
            if time.monotonic() >= deadline:
                return False
            time.sleep(_LOOK_S)
        return True

    def _has_ended(self) -> bool:
        """Ask the system until it says so once: the number may be another process's from then on."""
        if not self._is_gone:
            try:
                self._is_gone = os.waitpid(self._server, os.WNOHANG)[0] != 0
            except ChildProcessError:  # someone else has waited for it
                self._is_gone = True
        return self._is_gone

    def kill_all(self) -> None:
        """Kill every child process now."""
        for pid in self._living.copy():
            _kill(pid)

    def enter(self, attempt: Attempt) -> End:
        """Run the handler in a child process; see `runners.Runner`."""
        return self._run(attempt.entry, _order(attempt.entry, attempt.named))

    def reconcile(self, entry: HandlerEntry, named: dict[str, Any]) -> End:
        """Run the tool's reconcile in a child process; `named` are the arguments as decoded."""
        return self._run(entry, {**_order(entry, named), "reconcile": True})

    def _run(self, entry: HandlerEntry, order: dict[str, Any]) -> End:
        try:
            pipe = self._new_pipe()
        except OSError as error:
            self.broken = True
            return End(Kind.NOT_STARTED, code="no_process", message=f"no process could be started: {error}")
        with pipe:
            return self._run_in_child(entry, order, pipe)

    def _new_pipe(self) -> Pipe[Any, Any]:
        if self._orders is None:
            raise BrokenPipeError("the process that starts others is gone")
        ours, theirs = socket.socketpair()
        with self._lock, theirs:
            socket.send_fds(self._orders, [b"h"], [theirs.fileno()])
        return Pipe(ours.detach())

    def _run_in_child(self, entry: HandlerEntry, order: dict[str, Any], pipe: Pipe[Any, Any]) -> End:
        try:
            pid = json.loads(pipe.recv_bytes())["pid"]
        except (EOFError, OSError):
            return End(Kind.NOT_STARTED, code="no_process", message="no process could be started")
        self._living.add(pid)
        try:
            _send(pipe, order)
            return _listen(entry, pipe)
        except (EOFError, OSError):
            return End(Kind.DIED, code="process_died", message="the process that ran it died")
        finally:
            self._living.discard(pid)
            _kill(pid)


def _order(entry: HandlerEntry, named: dict[str, Any]) -> dict[str, Any]:
    call = entry.call
    context = {name: getattr(call, name) for name in _CONTEXT}
    return {
        "tool": entry.tool.name, "values": named, "call": context, "secrets": call.secrets.texts, "reconcile": False,
    }  # fmt: skip


def _listen(entry: HandlerEntry, pipe: Pipe[Any, Any]) -> End:
    """Answer the handler's questions until its end, or its limit.

    Raises:
        EOFError, OSError: the child process died.
    """
    limit = entry.call.limit_at
    while pipe.poll(None if limit is None else max(0.0, limit - time.monotonic())):
        message = json.loads(pipe.recv_bytes())
        if "end" in message:
            return End.from_json(message["end"])
        _send(pipe, _answer(entry, message))
    _LOG.warning("call %s: %s; its process is killed", entry.call.key, overrun(entry).message)
    return overrun(entry)


def _answer(entry: HandlerEntry, question: dict[str, Any]) -> dict[str, Any]:
    channel = entry.call.channel
    try:
        match question["ask"]:
            case "begin":
                return {"said": channel.begin()}
            case "progress":
                return {"said": channel.progress(question["fraction"], question["message"])}
            case _:
                return {"said": channel.standing()}
    except NotStarted as error:
        return {"not_started": str(error), "retry_after": error.retry_after}
    except StoreError as error:
        return {"error": str(error)}


def _send(pipe: Pipe[Any, Any], message: dict[str, Any]) -> None:
    pipe.send_bytes(json.dumps(message).encode())


def _kill(pid: int) -> None:
    """Kill a child process with everything it has started; harmless for one that has ended."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
