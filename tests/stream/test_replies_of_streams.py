"""What real streams leave behind: the history of every transcript is taken by every provider, or stays as it was."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.support.provider_rules import refusal
from tests.support.transcripts import CONFORMANCE, RECORDINGS, Transcript, decode, transcripts
from tests.support.turns import outcomes, request
from toolonce.stream.replies import history, replies
from toolonce.stream.turn import DIALECTS

EVERY = [(t.key, t) for t in transcripts(CONFORMANCE)]
EVERY += [(f"recorded/{t.key}", t) for t in transcripts(RECORDINGS)]


def ids_of(transcript: Transcript) -> list[str | None]:
    return [call["call_id"] for call in (*transcript.answer["calls"], *transcript.answer["rejected"])]


def chosen(keep: Callable[[Transcript], object]) -> pytest.MarkDecorator:
    kept = [pytest.param(transcript, id=key) for key, transcript in EVERY if keep(transcript)]
    return pytest.mark.parametrize("transcript", kept)


@chosen(lambda t: t.answer["outcome"] == "completed")
def test_the_history_after_a_completed_turn_is_taken_by_every_provider(transcript: Transcript) -> None:
    turn = decode(transcript)

    for dialect in DIALECTS:
        answers = replies(dialect, outcomes(turn, value={"ok": True}), turn_id=turn.turn_id, came_in=turn.dialect)
        sent = json.dumps(request(dialect, [*history(dialect, turn), *answers]), ensure_ascii=False).encode()

        assert refusal(dialect, json.loads(sent)) is None, dialect


@chosen(lambda t: t.answer["outcome"] == "paused")
def test_a_paused_turn_goes_back_as_it_came(transcript: Transcript) -> None:
    turn = decode(transcript)

    assert history(turn.dialect, turn) == [{"role": "assistant", "content": list(turn.assistant)}]


@chosen(lambda t: t.answer["outcome"] not in ("completed", "paused"))
def test_any_other_turn_leaves_the_history_as_it_was(transcript: Transcript) -> None:
    turn = decode(transcript)

    assert [history(dialect, turn) for dialect in DIALECTS] == [[]] * len(DIALECTS)


@chosen(lambda t: ids_of(t) and all(ids_of(t)) and len(set(ids_of(t))) == len(ids_of(t)))
def test_ids_that_a_provider_made_and_takes_go_back_to_it_untouched(transcript: Transcript) -> None:
    turn = decode(transcript)

    sent = json.dumps(history(turn.dialect, turn)) + json.dumps(replies(turn.dialect, outcomes(turn), turn_id="t"))

    for call_id in ids_of(transcript):
        assert call_id is not None
        assert sent.count(json.dumps(call_id)) >= 2 or len(call_id) > 40
