"""Unusable arguments in a row: counted per scope and tool, once a turn, until the tool succeeds."""

from __future__ import annotations

from typing import Any

from tests.support.store.scene import Scene, spec
from toolonce.store.model.outcomes import Failure
from toolonce.store.operations import aborted_turns, journal

WRONG = Failure("invalid_arguments", "n is missing")


def errors(scene: Scene, turn_id: str, call_id: str = "a", *, tool: str = "pay", **more: Any) -> int | None:
    scope = more.get("scope", "scope")
    call = scene.call(call_id, {}, of=spec(tool), turn_id=turn_id, refusal=WRONG, scope=scope)
    [outcome] = scene.admit(call, turn=scene.turn(turn_id, scope=scope))
    return outcome.marks.get("argument_errors")


def test_argument_errors_in_a_row_are_numbered_and_the_second_is_a_repeated_one(scene: Scene) -> None:
    call = scene.call("x", {}, refusal=WRONG, turn_id="t3")

    assert [errors(scene, f"t{number}") for number in range(3)] == [1, 2, 3]
    assert scene.admit(call, turn=scene.turn("t3"))[0].has_repeated_argument_error


def test_a_repeated_submission_is_no_further_argument_error(scene: Scene) -> None:
    assert [errors(scene, "t1"), errors(scene, "t1"), errors(scene, "t2")] == [1, 1, 2]


def test_several_argument_errors_in_one_turn_count_once_since_nothing_was_corrected_between(
    scene: Scene,
) -> None:
    assert [
        errors(scene, "t1", "a"),
        errors(scene, "t1", "b"),
        errors(scene, "t2", "a"),
    ] == [1, 1, 2]


def test_a_success_of_the_tool_begins_the_count_anew(scene: Scene) -> None:
    errors(scene, "t1")
    scene.settle(scene.start("ok", turn_id="t2"), "done")

    assert errors(scene, "t3") == 1


def test_a_failure_of_the_tool_does_not(scene: Scene) -> None:
    errors(scene, "t1")
    scene.fail(scene.start("bad", turn_id="t2"))

    assert errors(scene, "t3") == 2


def test_tools_and_scopes_are_counted_apart(scene: Scene) -> None:
    assert errors(scene, "t1") == errors(scene, "t2", tool="look") == errors(scene, "t3", scope="other") == 1


def test_other_refusals_are_no_argument_errors(scene: Scene) -> None:
    unknown = scene.call("a", {}, refusal=Failure("unknown_tool", "no such tool"))

    assert scene.admit(unknown)[0].marks == {}


def test_an_entry_of_a_journal_is_written_once_and_its_writer_told_what_stands(scene: Scene) -> None:
    write = [scene.run(journal.write(scene.space, "scope", 0, text)) for text in ("first", "second")]
    scene.run(journal.write(scene.space, "scope", 10, "é"))
    scene.run(journal.write(scene.space, "scope", 9, "before"))

    assert write == ["first", "first"]
    assert scene.run(journal.read(scene.space, "scope")) == ("first", "before", "é")
    assert scene.run(journal.read(scene.space, "another")) == ()


def test_a_note_of_a_lost_turn_that_is_sent_twice_is_kept_once(scene: Scene) -> None:
    noting = aborted_turns.note_aborted(scene.space, {"reason": "cut"})
    scene.run(noting)
    scene.run(noting)
    scene.store.advance(5)
    scene.run(aborted_turns.note_aborted(scene.space, {"reason": "limit"}))

    notes = scene.run(aborted_turns.aborted(scene.space))
    assert [note["reason"] for note in notes] == ["limit", "cut"]
    assert notes[0]["at"] == notes[1]["at"] + 5
    assert len(scene.run(aborted_turns.aborted(scene.space, most=1))) == 1
