"""What real streams leave behind: the history of every transcript is taken by every provider, or stays as it was."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.support.stream.feeding import Frame, decoded
from tests.support.stream.provider_rules import refusal
from tests.support.stream.transcripts import CONFORMANCE, RECORDINGS, RecordedStream, decode, transcripts
from tests.support.stream.turns import outcomes, request
from toolonce.stream.harness.history import history, replies
from toolonce.stream.harness.submission import asked
from toolonce.stream.turns.turn import DIALECTS, Dialect

EVERY = [(t.key, t) for t in transcripts(CONFORMANCE)]
EVERY += [(f"recorded/{t.key}", t) for t in transcripts(RECORDINGS)]


def ids_of(transcript: RecordedStream) -> list[str | None]:
    return [call["call_id"] for call in (*transcript.answer["calls"], *transcript.answer["rejected"])]


def chosen(keep: Callable[[RecordedStream], object]) -> pytest.MarkDecorator:
    kept = [pytest.param(transcript, id=key) for key, transcript in EVERY if keep(transcript)]
    return pytest.mark.parametrize("transcript", kept)


@chosen(lambda t: t.answer["outcome"] == "completed")
def test_the_history_after_a_completed_turn_is_taken_by_every_provider(transcript: RecordedStream) -> None:
    turn = decode(transcript)

    for dialect in DIALECTS:
        answers = replies(outcomes(turn, value={"ok": True}), dialect, turn_id=turn.turn_id, came_in=turn.dialect)
        sent = json.dumps(request(dialect, [*history(turn, dialect), *answers]), ensure_ascii=False).encode()

        assert refusal(dialect, json.loads(sent)) is None, dialect


@chosen(lambda t: t.answer["outcome"] == "paused")
def test_a_paused_turn_goes_back_as_it_came(transcript: RecordedStream) -> None:
    turn = decode(transcript)

    assert history(turn, turn.dialect) == [{"role": "assistant", "content": list(turn.assistant)}]


@chosen(lambda t: t.answer["outcome"] not in ("completed", "paused"))
def test_any_other_turn_leaves_the_history_as_it_was(transcript: RecordedStream) -> None:
    turn = decode(transcript)

    assert [history(turn, dialect) for dialect in DIALECTS] == [[]] * len(DIALECTS)


@chosen(lambda t: ids_of(t) and all(ids_of(t)) and len(set(ids_of(t))) == len(ids_of(t)))
def test_ids_that_a_provider_made_and_takes_go_back_to_it_untouched(transcript: RecordedStream) -> None:
    turn = decode(transcript)

    sent = json.dumps(history(turn, turn.dialect)) + json.dumps(replies(outcomes(turn), turn.dialect, turn_id="t"))

    for call_id in ids_of(transcript):
        assert call_id is not None
        assert sent.count(json.dumps(call_id)) >= 2 or len(call_id) > 40


def _item(number: int, text: str | None = None) -> Frame:
    call = {"type": "function_call", "call_id": f"c{number}", "name": f"tool_{number}"}
    return {**call, "arguments": json.dumps({"n": number}) if text is None else text}


def _responses(order: list[int], output: list[Frame]) -> list[Frame]:
    kind = "response.output_item"
    opened = [{"type": f"{kind}.added", "output_index": at, "item": _item(at, "")} for at in order]
    ended = [{"type": f"{kind}.done", "output_index": at, "item": _item(at)} for at in order]
    response = {"id": "r", "status": "completed", "output": output}
    return [*opened, *ended, {"type": "response.completed", "response": response}]


def _steps(order: list[int]) -> list[Frame]:
    about = {"type": "function_call"}
    started = [
        {"event_type": "step.start", "index": at, "step": {**about, "id": f"c{at}", "name": f"tool_{at}",
                                                            "arguments": {"n": at}}}
        for at in order
    ]  # fmt: skip
    stopped = [{"event_type": "step.stop", "index": at} for at in order]
    over = {"event_type": "interaction.completed", "interaction": {"id": "v", "status": "requires_action"}}
    return [*started, *stopped, over]


MESSAGE: Frame = {"type": "message", "id": "m", "role": "assistant", "content": []}
ODD_ORDERS: list[tuple[Dialect, list[Frame], int]] = [
    ("openai-responses", _responses([2, 0, 1], []), 3),
    ("openai-responses", _responses([0, 1], [_item(1), _item(0)]), 2),
    ("openai-responses", _responses([1, 0], [_item(0), _item(1), _item(2)]), 3),
    ("openai-responses", _responses([0], [MESSAGE]), 1),
    ("openai-responses", _responses([1, 0], [MESSAGE, _item(0)]), 2),
    ("google-interactions", _steps([2, 0, 1]), 3),
]


@pytest.mark.parametrize(("dialect", "frames", "count"), ODD_ORDERS)
def test_a_call_keeps_its_own_id_whatever_the_order_in_which_calls_began(
    dialect: Dialect, frames: list[Frame], count: int
) -> None:
    turn = decoded(dialect, *frames)
    sent = {item["name"]: item.get("call_id") or item.get("id") for item in history(turn, dialect) if "name" in item}
    answers = {answer["call_id"]: answer for answer in replies(outcomes(turn, value=1), dialect, turn_id=turn.turn_id)}

    assert sent == {f"tool_{number}": f"c{number}" for number in range(count)}
    assert {call.name: call.call_id for call in turn.calls} == sent
    assert answers.keys() == set(sent.values())


def test_a_refused_custom_call_is_answered_as_a_custom_call() -> None:
    item = {"type": "custom_tool_call", "call_id": "k1", "name": "patch", "input": "\ud83d"}
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    over = {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": []}}
    turn = decoded("openai-responses", done, over)

    assert [(call.kind, call.reason) for call in turn.rejected] == [("custom", "lone_surrogate")]
    assert asked(turn.rejected[0]).kind == "custom"  # what is stored with it, and what its answer goes by
    for dialect in DIALECTS:
        answers = replies(outcomes(turn), dialect, turn_id="r", came_in=turn.dialect)
        assert refusal(dialect, request(dialect, [*history(turn, dialect), *answers])) is None
