"""Live turns over HTTP: what is asked for again, what never is, and what a user, a bill and a history see of it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from email.utils import formatdate
from typing import Any

import httpx2
import pytest
from tenacity import RetryCallState

from tests.support.stream.harness import Bench
from tests.support.stream.provider_server import ProviderServer, Reply
from tests.support.stream.speech import stream
from tests.support.stream.wire_paths import PATHS
from tests.support.wait import wait_until
from toolonce.store.operations.aborted_turns import aborted
from toolonce.stream.dialects.table import TABLE
from toolonce.stream.provider import retry
from toolonce.stream.provider.response import Cancel
from toolonce.stream.provider.retry import Aborted, Budget, Observers, httpx_opener, read_turn, retry_after
from toolonce.stream.replies.user_text import message_code
from toolonce.stream.turns.drafts import TurnEnded
from toolonce.stream.turns.errors import StreamingRefused, StreamMisuse
from toolonce.stream.turns.turn import DIALECTS, Dialect, TurnResult

ASKED: dict[str, Any] = {
    "messages": [],
    "input": [],
    "contents": [{"role": "user", "parts": [{"text": "Well?"}]}],
}
GOOD = stream("anthropic", "msg_1", [("pay", "toolu_1", {"n": 1})])
OVERLOADED = (
    GOOD.split(b"event: message_delta")[0]
    + b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'
)
LIMITED = GOOD.replace(b'"tool_use", "stop_sequence"', b'"max_tokens", "stop_sequence"')


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as opened:
        yield opened


@pytest.fixture
def http() -> Iterator[httpx2.Client]:
    with httpx2.Client(timeout=30) as client:
        yield client


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """No waits of our own between attempts; what was slept is noted."""
    slept: list[float] = []
    monkeypatch.setattr(retry, "_JITTER", lambda _state: 0.0)
    monkeypatch.setattr(Cancel, "sleep", lambda _self, seconds: slept.append(seconds))
    return slept


Read = Callable[..., TurnResult]


@pytest.fixture
def read(server: ProviderServer, http: httpx2.Client) -> Read:
    def read_one(dialect: Dialect = "anthropic", **more: Any) -> TurnResult:
        request = http.build_request("POST", server.url + PATHS[dialect], json=ASKED)
        return read_turn(httpx_opener(http, request), dialect, **more)

    return read_one


IDENTIFIED = {"x-amzn-RequestId": "turn-1"}  # where a dialect has no id in its stream


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_live_turn_of_every_dialect_is_read(server: ProviderServer, read: Read, dialect: Dialect) -> None:
    server.script.append(Reply(stream(dialect, "turn-1", [("pay", "c1", {"n": 1})]), pieces=11, headers=IDENTIFIED))
    result = read(dialect)

    turn_id = None if TABLE[dialect].turn_id.member == "none" else "turn-1"

    assert (result.outcome, result.turn_id) == ("completed", turn_id)
    assert [(call.name, call.arguments, call.turn_id) for call in result.calls] == [("pay", {"n": 1}, turn_id)]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_whole_response_of_every_dialect_is_read(read: Read, dialect: Dialect) -> None:
    result = read(dialect, streamed=False)

    assert (result.outcome, result.text) == ("completed", "Done.")


TRANSIENT = {
    "408": Reply(b"{}", 408),
    "409": Reply(b"{}", 409),
    "429": Reply(b'{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}', 429),
    "500": Reply(b"<html>oops</html>", 500),
    "503": Reply(b"", 503),
    "529": Reply(b'{"error":{"type":"overloaded_error"}}', 529),
    "cut in the middle": Reply(GOOD[: len(GOOD) // 2], promised=100),
    "cut before the first byte": Reply(b"", promised=100),
    "ended politely in the middle": Reply(GOOD[: len(GOOD) // 2]),
    "overloaded in mid-stream": Reply(OVERLOADED),
}


@pytest.mark.parametrize("what", TRANSIENT)
def test_what_may_pass_is_asked_for_again_with_nothing_left_of_the_first_attempt(
    server: ProviderServer, read: Read, what: str
) -> None:
    again = stream("anthropic", "msg_2", [("pay", "toolu_2", {"n": 2})])
    server.script.extend([TRANSIENT[what], again])
    lost: list[Aborted] = []
    result = read(observers=Observers(on_aborted=lost.append))

    assert [(call.call_id, call.arguments) for call in result.calls] == [("toolu_2", {"n": 2})]
    assert "toolu_1" not in str(result)
    assert len(server.requests) == 2
    assert server.requests[0] == server.requests[1]
    assert [(note.attempt, note.dialect) for note in lost] == [(1, "anthropic")]


FINAL = {
    "400": (Reply(b'{"type":"error","error":{"type":"invalid_request_error","message":"no"}}', 400), "failed"),
    "401": (Reply(b"{}", 401), "failed"),
    "404": (Reply(b"{}", 404), "failed"),
    "a length limit": (Reply(LIMITED), "truncated"),
    "a filter": (Reply(GOOD.replace(b'"tool_use", "stop_', b'"refusal", "stop_')), "filtered"),
    "arguments that break off": (Reply(GOOD.replace(b'{\\"n\\": 1}', b'{\\"n\\": ')), "malformed"),
    "a pause": (Reply(GOOD.replace(b'"tool_use", "stop_', b'"pause_turn", "stop_')), "paused"),
}


@pytest.mark.parametrize("what", FINAL)
def test_what_will_not_pass_is_never_asked_for_again(server: ProviderServer, read: Read, what: str) -> None:
    reply, outcome = FINAL[what]
    server.script.extend([reply, GOOD])
    result = read()

    assert result.outcome == outcome
    assert result.calls == ()
    assert len(server.requests) == 1


def test_attempts_are_few_and_the_last_word_is_told(server: ProviderServer, read: Read) -> None:
    server.script.extend([Reply(b"{}", 503)] * 5)
    lost: list[Aborted] = []
    result = read(budget=Budget(attempts=3), observers=Observers(on_aborted=lost.append))

    assert (result.outcome, result.error.status if result.error else None) == ("failed", 503)
    assert message_code(result) == "provider_busy"
    assert [(note.attempt, note.status) for note in lost] == [(1, 503), (2, 503), (3, 503)]


def test_nobody_at_the_other_end_is_said_as_such(http: httpx2.Client) -> None:
    request = http.build_request("POST", "http://127.0.0.1:9/v1/messages", json={})
    result = read_turn(httpx_opener(http, request), "anthropic", budget=Budget(attempts=2))

    assert result.outcome == "aborted"
    assert "ConnectError" in str(result.diagnostics)
    assert message_code(result) == "provider_unreachable"


def test_retry_after_is_obeyed_and_never_beyond_the_budget(
    server: ProviderServer, read: Read, waits: list[float]
) -> None:
    server.script.extend([Reply(b"{}", 429, {"retry-after": "7"}), GOOD])
    assert read().outcome == "completed"
    assert waits == [7.0]

    server.script.extend([Reply(b"{}", 429, {"retry-after": "3600"}), GOOD])
    assert read(budget=Budget(total_s=60)).outcome == "failed"
    assert waits == [7.0]


def test_retry_after_is_a_number_or_a_date_or_nothing() -> None:
    assert retry_after("1.5") == 1.5
    assert retry_after("-3") == retry_after("soon") == retry_after(None) == retry_after("") == 0
    assert retry_after(formatdate(0, usegmt=True)) == 0
    assert 3500 < retry_after(formatdate(time.time() + 3600, usegmt=True)) <= 3600


def test_a_provider_that_falls_silent_is_given_up(server: ProviderServer, read: Read) -> None:
    silent = Reply(GOOD, gate=len(GOOD) // 2)
    server.script.extend([silent, GOOD])
    lost: list[Aborted] = []
    result = read(budget=Budget(idle_s=0.2), observers=Observers(on_aborted=lost.append))
    silent.open.set()

    assert result.outcome == "completed"
    assert [note.reason for note in lost] == ["transport: idle"]
    assert lost[0].bytes_seen == len(GOOD) // 2


def test_a_turn_that_takes_longer_than_its_budget_is_given_up_for_good(server: ProviderServer, read: Read) -> None:
    slow = Reply(GOOD, gate=10)
    server.script.extend([slow, GOOD])
    result = read(budget=Budget(total_s=0.3))
    slow.open.set()

    assert (result.outcome, len(server.requests)) == ("aborted", 1)
    assert "transport: total" in result.diagnostics


def test_a_stop_ends_the_turn_at_once_and_is_not_retried(server: ProviderServer, read: Read) -> None:
    cancel, slow = Cancel(), Reply(GOOD, gate=len(GOOD) - 5)
    server.script.extend([slow, GOOD])
    drafts: list[Any] = []
    found: list[TurnResult] = []
    lost: list[Aborted] = []
    observers = Observers(on_draft=drafts.append, on_aborted=lost.append, cancel=cancel)
    thread = threading.Thread(target=lambda: found.append(read(observers=observers)))
    thread.start()
    wait_until(lambda: drafts, description="the turn has begun")
    cancel.cancel()
    thread.join(10)
    slow.open.set()

    assert found[0].outcome == "aborted"
    assert "transport: cancelled" in found[0].diagnostics
    assert drafts[-1] == TurnEnded("aborted")
    assert [note.attempt for note in lost] == [1]
    assert len(server.requests) == 1
    assert read(observers=Observers(cancel=cancel)).outcome == "aborted"
    assert len(server.requests) == 1


def test_a_released_turn_does_not_wait_for_the_transports_end(server: ProviderServer, read: Read) -> None:
    lingering = Reply(GOOD + b": ping\n\n", gate=len(GOOD))
    server.script.append(lingering)
    result = read(budget=Budget(idle_s=2))

    assert result.outcome == "completed"
    assert result.diagnostics == ()  # else it waited, and gave the transport up


def test_a_stop_that_serves_many_turns_keeps_nothing_of_those_that_are_over(server: ProviderServer, read: Read) -> None:
    cancel = Cancel()
    server.script.extend([GOOD, TRANSIENT["503"], GOOD])
    for _ in range(2):
        assert read(observers=Observers(cancel=cancel)).outcome == "completed"

    assert cancel._listeners == []


@pytest.mark.parametrize(
    "message",
    ["Streaming is not supported with strict JSON schemas", "`stream` is not available with strict tools"],
)
def test_a_provider_that_will_not_stream_strict_schemas_is_its_own_error(
    server: ProviderServer, read: Read, message: str
) -> None:
    body = f'{{"error":{{"type":"invalid_request_error","message":"{message}"}}}}'.encode()
    server.script.append(Reply(body, 400))

    with pytest.raises(StreamingRefused, match="streamed=False"):
        read()
    assert len(server.requests) == 1


def test_a_defect_of_the_program_is_raised_and_not_retried() -> None:
    asked = []

    def broken() -> Any:
        asked.append(1)
        raise KeyError("api_key")

    with pytest.raises(KeyError):
        read_turn(broken, "anthropic")
    assert asked == [1]


def test_what_was_lost_is_kept_for_the_bill(server: ProviderServer, read: Read, bench: Bench) -> None:
    server.script.extend([OVERLOADED, LIMITED])
    result = read(observers=Observers(on_aborted=bench.client.note_aborted))
    newest, first = bench.client.run(aborted(bench.client.terms.space))

    assert result.outcome == "truncated"
    assert (first["outcome"], first["bytes_seen"], first["scope"]) == ("failed", len(OVERLOADED), "tenant-1/talk-1")
    assert (newest["outcome"], newest["attempt"], newest["tokens_seen"]) == ("truncated", 2, 7)
    assert newest["at"] >= first["at"] > 0
    assert asdict(Aborted("d", "o", "r", 0, 0, None, 0, 1)).keys() < newest.keys()  # type: ignore[arg-type]


def test_our_own_waits_grow_and_are_jittered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    state = RetryCallState(retry_object=None, fn=None, args=(), kwargs={})  # type: ignore[arg-type]
    drawn: dict[int, set[float]] = {}
    for number in (1, 6):
        state.attempt_number = number
        drawn[number] = {retry._JITTER(state) for _ in range(50)}

    assert len(drawn[1]) > 10
    assert max(drawn[1]) < max(drawn[6]) <= 20


@pytest.mark.parametrize("error", [KeyboardInterrupt, BrokenPipeError])
def test_an_attempt_that_ctrl_c_or_a_drafts_listener_ends_is_told_as_lost(
    server: ProviderServer, read: Read, error: type[BaseException]
) -> None:
    server.script.append(Reply(GOOD, gate=len(GOOD) - 5))
    lost: list[Aborted] = []

    def listener(_draft: object) -> None:
        raise error

    with pytest.raises(error):
        read(observers=Observers(on_draft=listener, on_aborted=lost.append))
    assert [(note.outcome, note.reason, note.status) for note in lost] == [
        ("aborted", f"transport: {error.__name__}", 200)
    ]
    assert lost[0].bytes_seen > 0
    assert len(server.requests) == 1


def test_an_opener_that_sent_nothing_lost_nothing() -> None:
    lost: list[Aborted] = []

    def opener() -> Any:
        raise KeyError("api_key")

    with pytest.raises(KeyError):
        read_turn(opener, "anthropic", observers=Observers(on_aborted=lost.append))
    assert lost == []


@pytest.mark.parametrize("streamed", [True, False])
def test_a_live_turn_that_used_up_the_tokens_of_its_request_is_truncated(
    server: ProviderServer, read: Read, streamed: bool
) -> None:
    """Faults 19: the provider says `tool_use`; the request's own limit says that the call was cut."""
    body = {
        "id": "msg_1", "type": "message", "role": "assistant", "stop_reason": "tool_use", "usage": {"output_tokens": 7},
        "content": [{"type": "tool_use", "id": "t1", "name": "pay", "input": {"n": 1}}],
    }  # fmt: skip
    server.script.extend([Reply(GOOD if streamed else json.dumps(body).encode())] * 3)

    cut, whole, plain = [read(streamed=streamed, max_tokens=most) for most in (7, 8, None)]

    assert (cut.outcome, cut.calls) == ("truncated", ())
    assert [(turn.outcome, len(turn.calls)) for turn in (whole, plain)] == [("completed", 1)] * 2
    assert len(server.requests) == 3  # a length limit is not asked for again


@pytest.mark.parametrize("most", [0, -1, True, 1.5, "7"])
def test_a_limit_of_tokens_that_is_none_is_said_before_anything_is_sent(
    server: ProviderServer, read: Read, most: Any
) -> None:
    with pytest.raises(StreamMisuse, match="max_tokens"):
        read(max_tokens=most)

    assert server.requests == []


def test_the_usage_that_follows_the_release_is_read_and_a_line_that_breaks_before_it_takes_nothing_away(
    server: ProviderServer, read: Read
) -> None:
    said = stream("bedrock-converse", "", [("pay", "c1", {"n": 1})])
    server.script.append(Reply(said, pieces=7))
    server.script.append(Reply(said[: said.index(b"metadata")], promised=100))
    whole, cut = read("bedrock-converse"), read("bedrock-converse")

    assert (whole.outcome, whole.tokens_seen) == ("completed", 5)
    assert (cut.outcome, cut.tokens_seen, len(cut.calls)) == ("completed", None, 1)
