"""Counting calls."""

from __future__ import annotations

import pytest

from tests.support.processes.command_line import CommandLine
from tests.support.store.live_store import LiveScene
from tests.support.store.scene import spec
from toolonce.ops.metrics import rates


def test_the_counts_add_up_and_name_every_state_tool_and_queue(scene: LiveScene, toolonce: CommandLine) -> None:
    scene.publish(spec("pay"), spec("mail", queue="post"))
    scene.succeeded("a")
    scene.unknown("b")
    scene.submit("c", of=spec("mail", queue="post"))

    said = toolonce("stats", "--json")

    view = said.json
    assert (view["admitted"], view["settled"], view["open"], view["balanced"]) == (3, 1, 2, True)
    assert {state: number for state, number in view["states"].items() if number} == {
        "queued": 1, "unknown": 1, "succeeded": 1,
    }  # fmt: skip
    assert view["tools"] == {"mail": {"queued": 1}, "pay": {"succeeded": 1, "unknown": 1}}
    assert view["queues"]["post"] == {"waiting": 1, "taken": 0}
    assert view["oldest_ms"]["unknown"] >= 0
    assert view["oldest_ms"]["running"] is None


def test_an_empty_store_is_no_error(toolonce: CommandLine) -> None:
    said = toolonce("stats")

    assert said.code == 0
    assert said.out.startswith("0 admitted = 0 settled + 0 open")


def test_a_store_that_went_back_is_said_first(scene: LiveScene, toolonce: CommandLine) -> None:
    scene.live.redis.hset(f"{scene.space.root}flags", "went_back", "1")

    assert "recover" in toolonce("stats").out.splitlines()[1]


def test_rates_are_those_of_the_last_minute(scene: LiveScene, toolonce: CommandLine) -> None:
    for name in "abc":
        scene.succeeded(name)
    scene.start("d")

    per_second = toolonce("stats", "--json").json["per_second"]

    assert per_second == {"admitted": 0.067, "claimed": 0.067, "settled": 0.05, "over_s": 60}
    assert "per second: 0.067 admitted" in toolonce("stats").out


def test_on_a_busy_store_rates_are_those_of_a_shorter_time(
    scene: LiveScene, toolonce: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rates, "MOST", 6)
    for name in "abcd":
        scene.succeeded(name)

    per_second = toolonce("stats", "--json").json["per_second"]

    assert per_second["over_s"] < 60
    assert per_second["settled"] * per_second["over_s"] == pytest.approx(2, rel=0.01)
