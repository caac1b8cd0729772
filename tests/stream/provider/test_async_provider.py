"""Live turns over asyncio: the same rules, and a stop is the task's own cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import httpx2
import pytest

from tests.support.stream.harness import Bench
from tests.support.stream.provider_server import ProviderServer, Reply
from tests.support.stream.speech import stream
from tests.support.stream.wire_paths import PATHS
from toolonce.store.operations.aborted_turns import aborted
from toolonce.stream.harness.async_client import AsyncClient
from toolonce.stream.provider import retry
from toolonce.stream.provider.async_retry import httpx_opener_async, read_turn_async
from toolonce.stream.provider.retry import Aborted, Budget, Observers
from toolonce.stream.turns.errors import StreamingRefused
from toolonce.stream.turns.turn import DIALECTS, Dialect, TurnResult

GOOD = stream("anthropic", "msg_1", [("pay", "toolu_1", {"n": 1})])
ASKED: dict[str, Any] = {"messages": [], "input": [], "contents": [{"role": "user", "parts": [{"text": "Well?"}]}]}


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as opened:
        yield opened


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "_JITTER", lambda _state: 0.0)


def read(server: ProviderServer, dialect: Dialect = "anthropic", **more: Any) -> TurnResult:
    return asyncio.run(reading(server, dialect, **more))


async def reading(server: ProviderServer, dialect: Dialect = "anthropic", **more: Any) -> TurnResult:
    async with httpx2.AsyncClient(timeout=30) as http:
        request = http.build_request("POST", server.url + PATHS[dialect], json=ASKED)
        return await read_turn_async(httpx_opener_async(http, request), dialect, **more)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_live_turn_of_every_dialect_is_read(server: ProviderServer, dialect: Dialect) -> None:
    server.script.append(Reply(stream(dialect, "turn-1", [("pay", "c1", {"n": 1})]), pieces=11))
    streamed = read(server, dialect)
    whole = read(server, dialect, streamed=False)

    assert [(call.name, call.arguments) for call in streamed.calls] == [("pay", {"n": 1})]
    assert whole.text == "Done."


@pytest.mark.parametrize(
    "first",
    [Reply(b"{}", 429), Reply(b"", 503), Reply(GOOD[:200], promised=9), Reply(GOOD[:200])],
    ids=["429", "503", "cut", "ended politely"],
)
def test_what_may_pass_is_asked_for_again_and_noted(server: ProviderServer, first: Reply) -> None:
    server.script.extend([first, stream("anthropic", "msg_2", [("pay", "toolu_2", {"n": 2})])])
    lost: list[Aborted] = []
    result = read(server, observers=Observers(on_aborted=lost.append))

    assert [call.call_id for call in result.calls] == ["toolu_2"]
    assert [note.attempt for note in lost] == [1]


@pytest.mark.parametrize("status", [400, 401, 404])
def test_what_will_not_pass_is_never_asked_for_again(server: ProviderServer, status: int) -> None:
    server.script.extend([Reply(b"{}", status), GOOD])

    assert read(server).outcome == "failed"
    assert len(server.requests) == 1


def test_a_provider_that_falls_silent_is_given_up(server: ProviderServer) -> None:
    server.script.extend([Reply(GOOD, gate=200), GOOD])
    lost: list[Aborted] = []
    result = read(server, budget=Budget(idle_s=0.2), observers=Observers(on_aborted=lost.append))

    assert result.outcome == "completed"
    assert [(note.reason, note.bytes_seen) for note in lost] == [("transport: idle", 200)]


def test_a_budget_that_is_used_up_ends_it(server: ProviderServer) -> None:
    server.script.extend([Reply(GOOD, gate=10), GOOD])

    assert read(server, budget=Budget(total_s=0.3)).outcome == "aborted"
    assert len(server.requests) == 1


def test_a_cancelled_task_is_told_as_lost_and_asks_no_more(server: ProviderServer) -> None:
    server.script.extend([Reply(GOOD, gate=len(GOOD) - 5), GOOD])
    lost: list[Aborted] = []
    begun = asyncio.Event()

    async def main() -> None:
        observers = Observers(on_draft=lambda _draft: begun.set(), on_aborted=lost.append)
        task = asyncio.create_task(reading(server, observers=observers))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert [note.reason for note in lost] == ["transport: cancelled"]
    assert len(server.requests) == 1


def test_a_refusal_to_stream_and_a_defect_of_the_program_are_raised(server: ProviderServer) -> None:
    server.script.append(Reply(b'{"error":{"message":"no streaming with strict schemas"}}', 400))
    with pytest.raises(StreamingRefused):
        read(server)

    async def broken() -> Any:
        raise KeyError("api_key")

    opener: Callable[[], Awaitable[Any]] = broken
    with pytest.raises(KeyError):
        asyncio.run(read_turn_async(opener, "anthropic"))


def test_a_client_over_asyncio_notes_what_was_lost(server: ProviderServer, bench: Bench) -> None:
    server.script.extend([Reply(GOOD[: len(GOOD) // 2]), GOOD])

    async def main() -> None:
        async with AsyncClient(bench.url, scope="tenant-1/talk-1", namespace=bench.namespace) as client:
            await reading(server, observers=Observers(on_aborted=client.note_aborted))

    asyncio.run(main())
    [note] = bench.client.run(aborted(bench.client.terms.space))
    assert (note["scope"], note["outcome"], note["attempt"]) == ("tenant-1/talk-1", "truncated", 1)


def test_an_attempt_that_a_drafts_listener_ends_is_told_as_lost(server: ProviderServer) -> None:
    server.script.append(Reply(GOOD, gate=len(GOOD) - 5))
    lost: list[Aborted] = []

    with pytest.raises(BrokenPipeError):
        read(server, observers=Observers(on_draft=_breaks, on_aborted=lost.append))
    assert [(note.reason, note.bytes_seen > 0) for note in lost] == [("transport: BrokenPipeError", True)]


def _breaks(_draft: object) -> None:
    raise BrokenPipeError


def test_a_turn_that_used_up_the_tokens_of_its_request_is_truncated(server: ProviderServer) -> None:
    """Faults 19."""
    server.script.extend([Reply(GOOD)] * 2)

    assert [read(server, max_tokens=most).outcome for most in (7, 8)] == ["truncated", "completed"]
