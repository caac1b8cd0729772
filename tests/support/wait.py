"""Waiting in tests: for a fact, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

POLL_SECONDS = 0.005
PATIENCE_SECONDS = 60
"""A machine that is busy with other things is no fault of the code; only a test that fails waits so long."""


def wait_until(predicate: Callable[[], T], timeout: float = PATIENCE_SECONDS, description: str = "") -> T:
    """Return the predicate's first true value.

    Raises:
        AssertionError: It stayed false for `timeout` seconds; the message is the description.
    """
    deadline = time.monotonic() + timeout
    while not (value := predicate()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout} s in vain: {description or predicate}")
        time.sleep(POLL_SECONDS)
    return value
