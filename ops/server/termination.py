"""What SIGTERM and a closed terminal mean for a command: it ends in order, so that no server of ours stays behind.

Commands that have something better to do with a signal (a drain) set their own handlers inside. A word that came where
Python hears none, or in the middle of a step that must be whole, is heard right after.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any, NoReturn

_ENDS = (signal.SIGTERM, signal.SIGHUP)
_AGAIN_S = 0.02


@contextmanager
def signals_as_exceptions() -> Iterator[None]:
    """While it is entered, these signals raise SystemExit with the exit code that shells expect.

    One that is ignored (``nohup``) stays ignored. Threads other than the main one cannot set handlers.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _ENDS}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, _end)
    hook, ended = sys.unraisablehook, threading.Event()
    sys.unraisablehook = partial(_hear_again, hook, ended)
    try:
        yield
    finally:
        ended.set()
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """For a short step that must not be left half done: a signal that comes meanwhile is heard at its end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before: dict[int, Any] = {}
    try:
        for heard in (signal.SIGINT, *_ENDS):
            handler = signal.getsignal(heard)
            if callable(handler):
                before[heard] = handler
                signal.signal(heard, lambda number, _frame: came.append(number))
        yield
    finally:
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, before)  # or one of them leaves the others unrestored
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if came:
            signal.raise_signal(came[0])


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def _hear_again(otherwise: Callable[[Any], object], ended: threading.Event, lost: sys.UnraisableHookArgs) -> None:
    """A signal that came while some object was being finalised is lost there, by the language's rules: given again."""
    match lost.exc_value:
        case SystemExit(code=int(code)) if code - 128 in _ENDS:
            number: int = code - 128
        case KeyboardInterrupt():
            number = signal.SIGINT
        case _:
            otherwise(lost)
            return
    main = threading.main_thread().ident
    assert main is not None

    def again() -> None:
        if not ended.wait(_AGAIN_S):
            signal.pthread_kill(main, number)  # whatever the main thread waits in has to be interrupted

    threading.Thread(target=again, daemon=True).start()
