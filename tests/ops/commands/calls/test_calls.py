"""Listing calls: states, filters, pages."""

from __future__ import annotations

import pytest

from tests.support.processes.command_line import CommandLine
from tests.support.store.live_store import LiveScene
from tests.support.store.scene import spec
from toolonce.ops.options import listing


def test_calls_of_all_states_are_listed_newest_first(scene: LiveScene, toolonce: CommandLine) -> None:
    done = scene.succeeded("a")
    doubtful = scene.unknown("b").call
    waiting = scene.submit("c")

    said = toolonce("calls", "--json")

    assert said.code == 0
    rows = said.json["calls"]
    assert [(row["call"], row["state"]) for row in rows] == [
        (waiting, "queued"), (doubtful, "unknown"), (done, "succeeded"),
    ]  # fmt: skip
    assert said.json["next"] is None


@pytest.mark.parametrize("order", [[], ["--oldest"]])
def test_calls_of_one_turn_are_listed_in_call_order_over_all_pages(
    scene: LiveScene, toolonce: CommandLine, order: list[str]
) -> None:
    """Faults 31: one script admits them in one millisecond; what orders them must not be their keys."""
    turns = [[scene.call(f"{name}-{n}", turn_id=name, position=n) for n in range(40)] for name in ("first", "second")]
    expected = [outcome.key for turn in turns for outcome in scene.admit(*turn)]

    seen: list[str] = []
    page = toolonce("calls", "--json", "--limit", "7", *order).json
    while page["next"] is not None:
        seen += [row["call"] for row in page["calls"]]
        page = toolonce("calls", "--json", "--limit", "7", *order, "--cursor", page["next"]).json
    seen += [row["call"] for row in page["calls"]]

    assert seen == (expected if order else expected[::-1])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--state", "failed"], ["b", "c"]),
        (["--tool", "mail"], ["c"]),
        (["--scope", "acme/*"], ["d"]),
        (["--scope", "acme/1"], ["d"]),
        (["--scope", "acme"], []),
        (["--error", "BANK"], ["b"]),
        (["--worker", "worker-1", "--state", "succeeded"], ["a"]),
        (["--worker", "worker-2"], []),
        (["--since", "1h"], ["a", "b", "c", "d"]),
        (["--older-than", "1h"], []),
    ],
)
def test_each_filter_keeps_what_it_says(
    scene: LiveScene, toolonce: CommandLine, words: list[str], expected: list[str]
) -> None:
    scene.succeeded("a")
    scene.failed("b", "the bank is closed")
    scene.failed("c", of=spec("mail"))
    scene.submit("d", scope="acme/1")

    rows = toolonce("calls", "--json", *words).json["calls"]

    assert sorted(row["id"] for row in rows) == expected


@pytest.mark.parametrize("order", [[], ["--oldest"]])
def test_pages_show_every_call_once_even_of_one_moment(
    scene: LiveScene, toolonce: CommandLine, order: list[str]
) -> None:
    """The store is read five calls at a time here, far fewer than were admitted at once."""
    expected = {scene.succeeded(f"done-{number}", turn_id="other") for number in range(3)}
    new = [scene.call(f"call-{number}", position=number) for number in range(17)]
    expected |= {outcome.key for outcome in scene.admit(*new)}

    seen: list[str] = []
    cursor: list[str] = []
    while True:
        page = toolonce("calls", "--json", "--limit", "4", *order, *cursor).json
        seen += [row["call"] for row in page["calls"]]
        if page["next"] is None:
            break
        cursor = ["--cursor", page["next"]]

    assert len(seen) == len(set(seen))
    assert set(seen) == expected


def test_a_search_that_matches_little_stops_and_says_where_to_go_on(
    scene: LiveScene, toolonce: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    rare = scene.submit("rare", of=spec("rare"))
    scene.admit(*(scene.call(f"call-{number}", turn_id="t2", position=number) for number in range(9)))
    monkeypatch.setattr(listing, "LOOK_MOST", 5)

    first = toolonce("calls", "--tool", "rare", "--json").json
    second = toolonce("calls", "--tool", "rare", "--json", "--cursor", first["next"]).json

    assert (first["calls"], first["looked_at"]) == ([], 5)
    assert [row["call"] for row in second["calls"]] == [rare]


def test_the_table_names_state_tool_and_why(scene: LiveScene, toolonce: CommandLine) -> None:
    failed = scene.failed("a", "the bank is closed")

    said = toolonce("calls")

    (line,) = [line for line in said.out.splitlines() if line.startswith(failed[:12])]
    assert line.split()[1] == "failed"
    assert "tool_error: the bank is closed" in line


def test_a_tool_named_by_a_model_cannot_write_to_the_terminal(scene: LiveScene, toolonce: CommandLine) -> None:
    scene.submit("a", of=spec("pay\x1b[2J[red]"))

    said = toolonce("calls")

    assert "\x1b" not in said.out
    assert "[red]" in said.out


@pytest.mark.parametrize("word", ["--tool", "--scope", "--worker", "--error"])
@pytest.mark.parametrize("command", ["calls", "cancel", "retry", "purge", "replay", "approve"])
def test_an_empty_filter_is_refused_since_it_would_choose_every_call(
    scene: LiveScene, toolonce: CommandLine, command: str, word: str
) -> None:
    key = scene.submit("a")

    said = toolonce(command, "--state", "queued", word, "")

    assert (said.code, "the value is empty" in said.err) == (2, True)
    assert scene.state(key) == "queued"


def test_a_state_that_there_is_not_is_answered_with_those_there_are(toolonce: CommandLine) -> None:
    said = toolonce("calls", "--state", "nope")

    assert said.code == 2
    assert "State." not in said.err
    assert "'unknown'" in said.err


def test_rows_that_few_digits_no_longer_find_are_shown_with_whole_keys(scene: LiveScene, toolonce: CommandLine) -> None:
    keys = [scene.submit(call_id) for call_id in "abc"]
    first = toolonce("calls", "--limit", "1", "--json").json

    near, far = toolonce("calls"), toolonce("calls", "--cursor", first["next"])

    assert not any(key in near.out for key in keys)
    assert [key for key in keys if key in far.out] == keys[:-1]
    assert [row["call"] for row in first["calls"]] == keys[-1:]


def test_a_call_behind_one_in_doubt_says_whom_it_waits_for(scene: LiveScene, toolonce: CommandLine) -> None:
    """faults 26, G2: listed, counted and answerable."""
    ahead = scene.unknown("a", lanes=("lane",)).call
    behind = scene.submit("b", lanes=("lane",))

    (row,) = toolonce("calls", "--state", "held", "--json").json["calls"]
    shown = toolonce("call", behind, "--json").json

    assert (row["call"], row["reason"]) == (behind, "order")
    assert (row["waits_for"], row["waits_for_state"]) == (ahead, "unknown")
    assert f"behind {ahead[:12]} (unknown)" in toolonce("calls", "--state", "held").out.replace("\n", " ")
    assert (shown["waits_for"], shown["waits_for_state"]) == (ahead, "unknown")
    assert any("cancel" in step for step in shown["next"])
    assert ahead[:12] in toolonce("doctor").out
    assert behind[:12] in toolonce("doctor").out
    assert toolonce("stats", "--json").json["held_behind_doubt"] == 1
    assert "1 held behind unknown calls" in toolonce("stats").out


def test_a_stop_that_was_asked_for_is_told_alike_by_calls_and_call(scene: LiveScene, toolonce: CommandLine) -> None:
    run = scene.start("a")
    scene.cancel(run.call)

    [row] = toolonce("calls", "--json").json["calls"]
    one = toolonce("call", run.call, "--json").json

    assert (row["cancel_requested"], one["cancel_requested"]) == (True, True)
