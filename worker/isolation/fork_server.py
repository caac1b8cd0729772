"""The process that forks child processes, and the child process itself: user code in a process of its own.

The fork server is forked from the worker before any thread starts, with the tools loaded, so that its own forks are
those of a process with one thread. It only waits for sockets and forks. Each ends with its parent: on Linux the kernel
kills it, elsewhere it notices; and the fork server first kills what its child processes have started. No child process
connects to the store: it asks the worker through its socket.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection as Pipe
from typing import Any, NoReturn

from ...store.model.secret_texts import Secrets
from ..execution.invoke import HandlerEntry, enter, enter_async, enter_reconcile
from ..tools.call import Call
from ..tools.errors import NotStarted
from ..tools.handler_result import End
from ..tools.registry import Registry

_PR_SET_PDEATHSIG = 1
_REAP_EVERY_S = 1.0


def serve(orders: socket.socket, registry: Registry, worker: int) -> NoReturn:
    """Be the fork server: fork a child process for each socket that comes, until the worker is gone."""
    children = _ForkedChildren()
    _ignore_stops()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _when_gone(worker, children.end)
    me = os.getpid()
    while True:
        children.reap()
        orders.settimeout(_REAP_EVERY_S if children.pids else None)
        try:
            word, sockets, _, _ = socket.recv_fds(orders, 1, 1)
        except TimeoutError:
            continue
        if not word:
            children.end()
        try:
            if (child := os.fork()) == 0:
                orders.close()
                _run_and_exit(partial(_be_child, sockets[0], registry, me))
            children.pids.add(child)
        except OSError as error:  # no process can be forked: the closed socket tells the worker
            _complain(f"no process for a tool: {error}")
        os.close(sockets[0])


class _ForkedChildren:
    """The child processes that were forked and not reaped; so no other process can have one of their ids."""

    def __init__(self) -> None:
        self.pids: set[int] = set()

    def reap(self) -> None:
        with suppress(ChildProcessError):
            while gone := os.waitpid(-1, os.WNOHANG)[0]:
                self.pids.discard(gone)

    def end(self) -> NoReturn:
        """Kill them with all that they have started, and end."""
        for pid in tuple(self.pids):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
        os._exit(0)


def _be_child(handle: int, registry: Registry, fork_server: int) -> None:
    os.setsid()  # signals to the worker's group do not reach us, and we can be killed with all that we start
    _die_with(fork_server)
    _ignore_stops()
    with Pipe(handle) as pipe:
        _send(pipe, {"pid": os.getpid()})
        end = _work(json.loads(pipe.recv_bytes()), registry, PipeChannel(pipe))
        _send(pipe, {"end": end.to_json()})


def _work(order: dict[str, Any], registry: Registry, channel: PipeChannel) -> End:
    tool = registry.find(order["tool"])
    assert tool, "the worker found it in the same registry"
    values = tool.signature.bind(order["values"])
    assert isinstance(values, dict), "the worker has bound the same arguments"
    secrets = Secrets(tuple(order["secrets"]), tool.has_secrets)
    entry = HandlerEntry(tool, values, Call(**order["call"], channel=channel, secrets=secrets))
    if order["reconcile"]:
        return enter_reconcile(entry, lambda said: asyncio.run(_awaited(said)))
    return asyncio.run(enter_async(entry)) if tool.is_async else enter(entry)


async def _awaited(said: Awaitable[Any]) -> Any:
    return await said


class PipeChannel:
    """A `call.CallChannel` in a child process: it asks the worker, which asks the store."""

    def __init__(self, pipe: Pipe[Any, Any]) -> None:
        self._pipe = pipe
        self._lock = threading.Lock()

    def begin(self) -> str:
        return str(self._ask({"ask": "begin"}))

    def progress(self, fraction: float | None, message: str) -> bool:
        return bool(self._ask({"ask": "progress", "fraction": fraction, "message": message}))

    def standing(self) -> str:
        return str(self._ask({"ask": "standing"}))

    def _ask(self, question: dict[str, Any]) -> Any:
        with self._lock:
            _send(self._pipe, question)
            answer = json.loads(self._pipe.recv_bytes())
        if "not_started" in answer:
            raise NotStarted(answer["not_started"], retry_after=answer["retry_after"])
        if "error" in answer:
            raise ConnectionError(answer["error"])
        return answer["said"]


def _send(pipe: Pipe[Any, Any], message: dict[str, Any]) -> None:
    pipe.send_bytes(json.dumps(message).encode())


def _run_and_exit(work: Callable[[], None]) -> NoReturn:
    """Run without ever coming back into the parent's code."""
    code = 1
    try:
        work()
        code = 0
    except BaseException as error:
        _complain(f"the process of a tool failed: {type(error).__name__}")  # its text may repeat a secret
    finally:
        with suppress(Exception):  # nothing may lead back from here
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _complain(words: str) -> None:
    sys.stderr.write(f"toolonce: {words}\n")
    sys.stderr.flush()


def _ignore_stops() -> None:
    # Handlers, not SIG_IGN: that would be handed down to programs that a tool starts.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)


def _die_with(parent: int) -> None:
    """Be killed when the parent dies, however it dies."""
    if sys.platform == "linux":  # also where our own code holds the interpreter
        _told_by_kernel(parent, signal.SIGKILL, lambda: os._exit(1))
    else:
        _when_gone(parent, lambda: os.killpg(os.getpgrp(), signal.SIGKILL))


def _when_gone(parent: int, end: Callable[[], None]) -> None:
    """Do this when the parent dies, however it dies."""
    if sys.platform == "linux":
        signal.signal(signal.SIGRTMAX, lambda *_: end())
        _told_by_kernel(parent, signal.SIGRTMAX, end)
    else:
        threading.Thread(target=_watch, args=(parent, end), daemon=True).start()


def _told_by_kernel(parent: int, number: int, end: Callable[[], None]) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        end()


def _watch(parent: int, end: Callable[[], None]) -> None:
    while os.getppid() == parent:
        time.sleep(0.2)
    end()
