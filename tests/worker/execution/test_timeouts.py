"""The thread that watches run limits."""

from __future__ import annotations

import logging
import threading
import time

import pytest

from toolonce.worker.execution.timeouts import RunLimits


def test_one_overrun_that_cannot_be_given_up_ends_no_other_limit(caplog: pytest.LogCaptureFixture) -> None:
    """G7: a process that can start no thread for a moment would else never enforce a limit again."""
    caplog.set_level(logging.ERROR, "toolonce.worker")
    limits, told = RunLimits(), threading.Event()

    def fail() -> None:
        raise RuntimeError("can't start new thread")

    limits.start()
    try:
        limits.watch(time.monotonic(), fail)
        limits.watch(time.monotonic() + 0.1, told.set)
        assert told.wait(60)
    finally:
        limits.stop(time.monotonic() + 2)
    assert "could not be given up" in caplog.text
