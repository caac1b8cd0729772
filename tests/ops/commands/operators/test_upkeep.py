"""Recovery, purging, replays and waiting from the command line."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from tests.support.processes.command_line import CommandLine
from tests.support.store.live_store import LiveScene
from tests.support.store.scene import spec
from tests.support.wait import wait_until
from toolonce.ops.commands.operators import recover

TRANSCRIPTS = Path(__file__).parents[4] / "ops" / "demo" / "transcripts"


def test_a_dead_workers_lease_is_seen_first_and_then_ended(scene: LiveScene, toolonce: CommandLine) -> None:
    scene.submit("a")
    run = scene.take(lease_ms=1)
    wait_until(lambda: toolonce("recover", "--dry-run", "--json").json["leases_run_out"] == 1)
    assert scene.state(run.call) == "running"

    said = toolonce("recover", "--json")

    assert said.json["unknown"] == 1
    assert scene.state(run.call) == "unknown"


def test_a_lost_pointer_is_pushed_again(
    scene: LiveScene, toolonce: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recover, "GRACE_MS", 20)
    scene.submit("a")
    job = scene.pop()
    scene.live.redis.delete(scene.space.intermediate_key("default"))

    said = toolonce("recover", "--json")

    assert said.json["repushed"] == 1
    assert scene.queued_jobs() == [job]


def test_a_loss_is_accepted_only_with_a_reason_and_a_yes(scene: LiveScene, toolonce: CommandLine) -> None:
    key = scene.submit("a")
    scene.claim(scene.pop() or "", seen=10_000)
    assert scene.record(key).fields.reason == "store_went_back"

    without_reason = toolonce("recover", "--accept-loss", "--yes")
    without_yes = toolonce("recover", "--accept-loss", "--reason", "compared")
    assert scene.state(key) == "held"
    accepted = toolonce("recover", "--accept-loss", "--reason", "compared", "--yes", "--json")

    assert (without_reason.code, without_yes.code) == (2, 4)
    assert accepted.json == {"store_went_back": 1, "calls_freed": 1}
    assert scene.state(key) == "queued"


def test_the_loss_of_single_calls_is_accepted_while_others_stay_held(scene: LiveScene, toolonce: CommandLine) -> None:
    """faults 7: by key and by filter; only what is held since the store went back is touched."""
    by_key, by_tool, other = scene.submit("a"), scene.submit("b", of=spec("mail")), scene.submit("c")
    while job := scene.pop():
        scene.claim(job, seen=10_000)
    approval = scene.submit("d", of=spec("mail"), held="approval")
    why = ("--reason", "compared")

    planned = toolonce("recover", "--accept-loss", by_key, "--dry-run", "--json")
    without_reason = toolonce("recover", "--accept-loss", by_key)
    assert scene.states([by_key, by_tool, other]) == ["held"] * 3
    one = toolonce("recover", "--accept-loss", by_key, *why, "--json")
    filtered = toolonce("recover", "--accept-loss", "--tool", "mail", *why, "--yes", "--json")
    chosen_for_nothing = toolonce("recover", by_key)

    assert [plan["will"] for plan in planned.json["plan"]] == [True]
    assert (without_reason.code, chosen_for_nothing.code) == (2, 2)
    assert [done["verdict"] for done in one.json["done"]] == ["freed"]
    assert {plan["call"]: plan["will"] for plan in filtered.json["plan"]} == {by_tool: True, approval: False}
    assert scene.states([by_key, by_tool, other, approval]) == ["queued", "queued", "held", "held"]
    assert "went_back" in scene.stats().flags


def test_a_purged_call_keeps_a_mark_and_never_runs_again(scene: LiveScene, toolonce: CommandLine) -> None:
    key = scene.succeeded("a", {"card": "4111"}, arguments={"name": "Ada"})

    said = toolonce("purge", key)

    assert said.code == 0
    stored = str(scene.record(key).fields)
    assert "Ada" not in stored
    assert "4111" not in stored
    (again,) = scene.lookup(scene.call("a", {"name": "Ada"}))
    assert again
    assert (again.state, again.marks["forgotten"]) == ("succeeded", True)


def test_a_call_in_doubt_is_purged_only_by_force_with_a_reason(scene: LiveScene, toolonce: CommandLine) -> None:
    run = scene.unknown("a")

    refused = toolonce("purge", run.call)
    without_reason = toolonce("purge", run.call, "--force")
    assert scene.state(run.call) == "unknown"
    forced = toolonce("purge", run.call, "--force", "--reason", "a test")

    assert (refused.code, without_reason.code, forced.code) == (1, 2, 0)
    assert scene.record(run.call).fields.forgotten
    assert toolonce("stats", "--json").json["balanced"]


def test_open_calls_are_never_purged(scene: LiveScene, toolonce: CommandLine) -> None:
    waiting, running = scene.start("b").call, scene.submit("a")

    said = toolonce("purge", waiting, running, "--force", "--reason", "r", "--yes")

    assert said.code == 1
    assert scene.states([waiting, running]) == ["running", "queued"]


def test_a_call_that_was_set_going_meanwhile_is_not_purged(
    scene: LiveScene, toolonce: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = scene.failed("a")
    stale = scene.record(key)
    scene.retry(key)
    monkeypatch.setattr("toolonce.ops.options.selection.get_record", lambda *_: stale)

    said = toolonce("purge", key)

    assert said.code == 1
    assert not scene.record(key).fields.forgotten
    assert scene.take().arguments == "{}"


def test_purging_by_age_leaves_what_is_younger(scene: LiveScene, toolonce: CommandLine) -> None:
    key = scene.succeeded("a")

    said = toolonce("purge", "--state", "succeeded", "--older-than", "1h", "--yes")

    assert said.code == 1
    assert not scene.record(key).fields.forgotten


def test_a_replay_of_stored_calls_answers_without_executing(scene: LiveScene, toolonce: CommandLine) -> None:
    done = scene.succeeded("a", 7, arguments={"n": 1})
    scene.unknown("b")

    said = toolonce("replay", "--since", "1h", "--json")

    answers = {answer["call"]: answer["answer"] for answer in said.json["answers"]}
    assert answers[done] == "replay"
    assert sorted(answers.values()) == ["open", "replay"]
    assert said.code == 1
    assert scene.queued_jobs() == []


def test_a_replay_of_a_turn_that_was_never_submitted_says_that_it_would_run(
    scene: LiveScene, toolonce: CommandLine
) -> None:
    turn = str(TRANSCRIPTS / "weather.anthropic.sse")

    said = toolonce("replay", "--turn", turn, "--scope", "s", "--json")

    assert {answer["answer"] for answer in said.json["answers"]} == {"new"}
    assert not any(scene.stats().counts.values())


def test_a_replay_notices_other_arguments_under_the_same_call(scene: LiveScene, toolonce: CommandLine) -> None:
    key = scene.succeeded("a", arguments={"n": 1})
    scene.live.redis.hset(f"{scene.space.root}call:{key}", "args", '{"n": 2}')

    said = toolonce("replay", key)

    assert said.code == 1
    assert "conflict" in said.out


def test_waiting_ends_when_the_call_comes_to_rest(scene: LiveScene, toolonce: CommandLine) -> None:
    run = scene.start("a")
    ending = threading.Timer(0.05, scene.settle, (run, 5))
    ending.start()

    said = toolonce("wait", run.call, "--json")

    ending.join()
    assert said.code == 0
    assert said.json["result"] == 5


def test_waiting_gives_up_when_the_time_is_up(scene: LiveScene, toolonce: CommandLine) -> None:
    key = scene.submit("a")

    said = toolonce("wait", key, "--timeout", "10ms")

    assert said.code == 1
    assert "still queued" in said.err


def test_tail_shows_what_has_happened_and_to_which_call(scene: LiveScene, toolonce: CommandLine) -> None:
    key = scene.succeeded("a")
    scene.failed("b", of=spec("mail"))

    every = [json.loads(line) for line in toolonce("tail", "--for", "0s", "--json").out.splitlines()]
    some = toolonce("tail", "--for", "0s", "--tool", "mail", "--to", "failed").out

    assert [event["op"] for event in every if event["call"] == key] == ["admit", "claim", "settle"]
    assert len(some.splitlines()) == 1
    assert "running -> failed" in some


@pytest.mark.parametrize("words", [["--last", "-5"], ["--last", "99999999999999999999"], ["--to", "nope"]])
def test_tail_refuses_what_would_show_nothing(toolonce: CommandLine, words: list[str]) -> None:
    said = toolonce("tail", "--for", "0s", *words)

    assert (said.code, said.out) == (2, "")


def test_an_event_is_one_line_whatever_the_reason_holds(scene: LiveScene, toolonce: CommandLine) -> None:
    key = scene.submit("a")
    toolonce("cancel", key, "--reason", "first\nsecond")

    said = toolonce("tail", "--last", "1", "--for", "0s")

    assert len(said.out.splitlines()) == 1
