"""An inbox entry is told under which id each of its calls goes out, before any of them is at rest."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.stream.inbox import Inbox


def submit(box: Inbox, turn: str, number: int, **more: Any) -> str:
    calls = [{"name": "pay", "arguments": {"n": number}, "id": "call_0"}]
    entry = box.add(scope="talk", turn=turn, calls=calls, **more)
    box.step()  # type: ignore[attr-defined]
    return entry


def told(box: Inbox, entry: str) -> tuple[dict[str, str], list[tuple[str, str]]]:
    admitted, *answers = box.answers(entry)
    return json.loads(admitted["reply_ids"]), [(answer["id"], answer["reply_id"]) for answer in answers]


def test_an_entry_is_told_the_ids_of_its_calls_before_they_rest_and_again_with_each_answer(box: Inbox) -> None:
    entries = [submit(box, str(turn), turn) for turn in range(3)]
    before = [told(box, entry)[0] for entry in entries]
    for _ in entries:
        box.bench.run_next("done")

    assert before[0] == {}
    assert len({before[1]["0"], before[2]["0"], "call_0"}) == 3
    assert [told(box, entry) for entry in entries] == [
        (ids, [("call_0", ids.get("0", ""))]) for ids in before
    ]  # fmt: skip


@pytest.mark.parametrize("stage", ["settled", "open"])
def test_an_entry_that_comes_again_is_told_the_same_ids(box: Inbox, stage: str) -> None:
    entries = [submit(box, str(turn), turn) for turn in (1, 2)]
    if stage == "settled":
        box.bench.run_all(["done", "done"])
    again = submit(box, "2", 2)
    if stage == "open":
        box.bench.run_all(["done", "done"])

    assert told(box, again) == told(box, entries[1])


def test_a_call_found_by_its_intent_and_a_conflict_are_told_under_the_ids_of_their_own_entries(
    box: Inbox,
) -> None:
    first = submit(box, "1", 1, intent={"0": "step"})
    found = submit(box, "2", 1, intent={"0": "step"})
    conflict = submit(box, "3", 2, intent={"0": "step"})
    box.bench.run_next("done")

    ids = [told(box, entry) for entry in (first, found, conflict)]
    assert ids[0] == ({}, [("call_0", "")])
    assert all(answers == [("call_0", admitted["0"])] for admitted, answers in ids[1:])
    assert ids[1][0] != ids[2][0]
