"""G8: exceptions that nobody waits for are told without their text."""

from __future__ import annotations

import asyncio
import gc
import threading

import pytest

from toolonce.worker import Registry
from toolonce.worker.execution.unheard import without_texts

MARK = "sk-MARK-1234"


def fails() -> None:
    raise ValueError(MARK)


class Finalized:
    def __del__(self) -> None:
        fails()


async def leave_a_task() -> None:
    async def late() -> None:
        fails()

    task = asyncio.create_task(late())
    asyncio.get_running_loop().call_soon(fails)
    await asyncio.sleep(0.01)
    del task
    gc.collect()


def test_what_fails_in_threads_tasks_and_finalizers_is_told_without_its_text(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """faults 1"""
    tools = Registry()

    @tools.tool(secret="key")
    def sign(key: str) -> None: ...

    with without_texts(tools):
        thread = threading.Thread(target=fails)
        thread.start()
        thread.join()
        Finalized()
        gc.collect()
        asyncio.run(leave_a_task())

    said = capsys.readouterr()
    assert MARK not in caplog.text + said.out + said.err
    assert caplog.text.count("something that a handler left behind failed") == 4
