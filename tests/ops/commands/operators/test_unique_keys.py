"""What the command line shows and says of calls that share a unique key."""

from __future__ import annotations

from tests.support.processes.command_line import CommandLine
from tests.support.store.live_store import LiveScene
from tests.support.store.scene import spec

ONCE = spec("bill", unique_by=("order",))
BILL = {"order": "A-17"}


def test_a_call_that_follows_is_shown_with_the_one_that_it_follows(scene: LiveScene, toolonce: CommandLine) -> None:
    first, second = (scene.submit(name, BILL, of=ONCE) for name in "ab")

    view = toolonce("call", second, "--json").json
    assert (view["reason"], view["follows"], view["unique_by"]) == ("duplicate", first, "order")
    assert (view["waits_for"], view["waits_for_state"]) == (first, "queued")
    assert view["next"][0].startswith(f"toolonce call {first[:12]}")
    assert f"behind {first[:12]} (queued)" in toolonce("call", second).out


def test_who_would_approve_a_call_that_follows_is_sent_to_the_first(scene: LiveScene, toolonce: CommandLine) -> None:
    first, second = (scene.submit(name, BILL, of=ONCE) for name in "ab")

    said = toolonce("approve", second, "--yes", "--reason", "r")

    assert said.code == 1
    assert f"follows call {first[:12]}" in said.out
    assert scene.state(second) == "held"


def test_a_retry_that_cannot_have_its_key_names_the_call_that_has_it(scene: LiveScene, toolonce: CommandLine) -> None:
    run = scene.start("a", BILL, of=ONCE)
    second = scene.submit("b", BILL, of=ONCE)
    scene.fail(run)

    said = toolonce("retry", second, "--yes", "--reason", "r")

    assert said.code == 1
    assert f"call {run.call[:12]} has the unique key of call {second[:12]}; it is failed" in said.out
    assert scene.state(second) == "failed"
