"""One call: found by few digits, shown with everything but secrets."""

from __future__ import annotations

import pytest

from tests.support.processes.command_line import CommandLine
from tests.support.store.live_store import LiveScene
from tests.support.store.scene import spec
from toolonce.store.model.keyring import Keyring
from toolonce.store.model.sealing import Sealer
from toolonce.store.model.specs import Effect
from toolonce.store.operations.runs import interrupt, progress


def test_a_call_is_found_by_key_by_idempotency_key_and_by_first_digits(scene: LiveScene, toolonce: CommandLine) -> None:
    key = scene.succeeded("a", 42)
    whole = scene.record(key).idempotency_key

    for typed in (key, whole, key[:8], whole[:40], key.upper()):
        assert toolonce("call", typed, "--json").json["call"] == key


def test_digits_that_fit_two_calls_name_none(scene: LiveScene, toolonce: CommandLine) -> None:
    key = scene.submit("a")
    other = key[:8] + "0" * 24
    scene.live.redis.copy(f"{scene.space.root}call:{key}", f"{scene.space.root}call:{other}")
    scene.live.redis.zadd(f"{scene.space.root}in:queued", {other: 1})

    said = toolonce("call", key[:8])

    assert said.code == 2
    assert key in said.err
    assert other in said.err


@pytest.mark.parametrize(("typed", "code"), [("abc", 2), ("not-hex", 2), ("0" * 32, 1), ("0" * 8, 1)])
def test_what_names_no_call_is_said_in_one_line(toolonce: CommandLine, typed: str, code: int) -> None:
    said = toolonce("call", typed)

    assert (said.code, said.out) == (code, "")
    assert said.err.startswith("toolonce: ")
    assert said.err.count("\n") == 1


def test_a_fingerprint_that_is_not_the_calls_is_refused(scene: LiveScene, toolonce: CommandLine) -> None:
    key = scene.submit("a")

    said = toolonce("call", f"{key}-{'0' * 32}")

    assert said.code == 1
    assert "another fingerprint" in said.err


def test_a_call_in_doubt_shows_its_history_and_what_may_be_done(scene: LiveScene, toolonce: CommandLine) -> None:
    run = scene.unknown("a", arguments={"cents": 5})

    shown = toolonce("call", run.call, "--json").json
    told = toolonce("call", run.call[:12]).out

    assert shown["state"] == "unknown"
    assert shown["arguments"] == {"cents": 5}
    assert [event["op"] for event in shown["history"]] == ["admit", "claim", "lose"]
    assert shown["fence"] == run.fence
    assert any("--succeeded" in step for step in shown["next"])
    assert any("retry" in step for step in shown["next"])
    assert all(step in told for step in shown["next"])


def test_a_call_in_doubt_shows_how_far_its_handler_said_it_was(scene: LiveScene, toolonce: CommandLine) -> None:
    """faults 8: the last message is often the only evidence of what has happened."""
    run = scene.start("a")
    key = run.call
    scene.run(progress(scene.space, run, 0.5, "transfer 3 of 6 is booked"))
    scene.run(interrupt(scene.space, run, reason="lost"))

    shown = toolonce("call", key, "--json").json

    assert (shown["state"], shown["progress"]) == ("unknown", {"fraction": 0.5, "message": "transfer 3 of 6 is booked"})
    assert "50% transfer 3 of 6 is booked" in toolonce("call", key).out


def test_an_attempt_that_said_nothing_leaves_the_message_of_the_one_before(
    scene: LiveScene, toolonce: CommandLine
) -> None:
    """faults 8."""
    first = scene.start("a", of=spec(effect=Effect.READ, max_attempts=2))
    scene.run(progress(scene.space, first, 0.5, "half"))
    scene.run(interrupt(scene.space, first, reason="lost"))
    scene.run(interrupt(scene.space, scene.take(), reason="lost"))

    shown = toolonce("call", first.call, "--json").json

    assert (shown["state"], shown["progress"]) == ("failed", {"fraction": None, "message": "half"})


def test_secret_fields_are_masked_even_where_the_keys_are_at_hand(
    scene: LiveScene, toolonce: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = "a key of sixteen or more"
    monkeypatch.setenv("TOOLONCE_KEYS", keys)
    sealed = Sealer(Keyring.parse(keys), "t", "pay").seal_arguments({"token": "hunter2", "city": "Oslo"}, ["token"])
    key = scene.submit("a", sealed, of=spec(secret=("token",)), secret=True)

    said = toolonce("call", key, "--json")

    assert said.json["arguments"] == {"token": "***", "city": "Oslo"}
    assert "hunter2" not in said.out


@pytest.mark.parametrize("value", [0, False, "", [], {}, None, 9007199254740993])
def test_false_like_values_and_large_integers_are_shown_as_they_are(
    scene: LiveScene, toolonce: CommandLine, value: object
) -> None:
    key = scene.succeeded("a", value)

    shown = toolonce("call", key, "--json").json

    assert shown["result"] == value
    assert type(shown["result"]) is type(value)


def test_a_late_outcome_is_shown_as_evidence(scene: LiveScene, toolonce: CommandLine) -> None:
    run = scene.unknown("a")
    scene.resolve(run.call, '"it happened"')
    scene.fail(run)

    shown = toolonce("call", run.call, "--json").json

    assert shown["result"] == "it happened"
    assert shown["evidence"]


def test_digits_that_find_nothing_are_answered_with_how_far_was_looked_and_the_way_out(toolonce: CommandLine) -> None:
    said = toolonce("call", "0123456789ab")

    assert said.code == 1
    assert "500 newest and oldest" in said.err
    assert "toolonce calls --json" in said.err
