"""Call ids that come again in a later turn of a scope: what goes out in their place is chosen once, in admission."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import Any

from tests.support.servers.redis_server import RealServer
from tests.support.store.live_store import LiveScene, LiveStore
from tests.support.store.scene import Scene
from toolonce.store.model.outcomes import Outcome
from toolonce.store.model.states import State
from toolonce.store.operations import queries, recovery
from toolonce.store.operations.admission import NewCall
from toolonce.store.operations.recovery import Retention

DAY = 86_400_000


def admit(scene: Scene, turn: str, *ids: str, request: str = "", **more: Any) -> tuple[Outcome, ...]:
    calls = [scene.call(call_id, turn_id=turn, position=at, **more) for at, call_id in enumerate(ids)]
    return scene.admit(*calls, turn=scene.turn(turn, scope=more.get("scope", "scope")), request=request)


def reply_ids(outcomes: tuple[Outcome | None, ...]) -> list[str | None]:
    return [outcome.reply_id if outcome else None for outcome in outcomes]


def forget(scene: Scene, *, tombstone_ms: int = 1) -> None:
    """Take the bodies of settled calls, and where their time has passed their tombstones."""
    scene.store.advance(10)
    for _ in range(2):
        scene.run(recovery.forget(scene.space, State.SUCCEEDED, Retention(body_ms=1, tombstone_ms=tombstone_ms)))


def test_the_first_turn_keeps_its_ids_and_later_ones_get_stand_ins_that_are_kept(scene: Scene) -> None:
    first, second = admit(scene, "1", "a", "b"), admit(scene, "2", "a", "c")

    assert reply_ids(first) == [None, None]
    assert re.fullmatch("call_[a-p]{24}", second[0].reply_id or "")
    assert second[1].reply_id is None
    assert second[0].call_id == "a"
    assert scene.run(queries.turn(scene.space, scene.turn("2").key)) == second
    record = scene.run(queries.record(scene.space, second[0].key))
    assert record
    assert (record.fields.call_id, record.fields.reply_id) == ("a", second[0].reply_id)


def test_admission_that_comes_twice_and_a_later_submission_are_told_the_same(scene: Scene) -> None:
    admit(scene, "1", "a")
    asked = admit(scene, "2", "a", "b", request="r")

    assert admit(scene, "2", "a", "b", request="r") == asked
    assert reply_ids(admit(scene, "2", "a", "b")) == reply_ids(asked)
    calls = [scene.call(name, turn_id="2") for name in "ab"]
    assert reply_ids(scene.lookup(*calls)) == reply_ids(asked)


def test_a_turn_in_parts_has_the_ids_of_one_that_came_whole(scene: Scene) -> None:
    admit(scene, "1", "a", "b")

    parts = [admit(scene, "2", name)[0].reply_id for name in ("b", "c", "a")]

    assert parts[0]
    assert parts[2]
    assert [parts[2], parts[0], parts[1]] == reply_ids(admit(scene, "2", "a", "b", "c"))


def test_a_stand_in_that_a_model_imitates_is_taken_for_an_id_in_use(scene: Scene) -> None:
    admit(scene, "1", "a")
    (stood_in,) = reply_ids(admit(scene, "2", "a"))

    (third,) = admit(scene, "3", stood_in or "")

    assert third.reply_id not in (None, stood_in)


def test_ids_stay_as_they_were_when_the_body_is_forgotten(scene: Scene) -> None:
    for turn in ("1", "2"):
        admit(scene, turn, "a")
        scene.settle(scene.take(), turn)
    before = reply_ids(scene.lookup(*(scene.call("a", turn_id=turn) for turn in ("1", "2"))))

    forget(scene, tombstone_ms=DAY)

    after = scene.lookup(*(scene.call("a", turn_id=turn) for turn in ("1", "2")))
    assert reply_ids(after) == before
    assert all(outcome and outcome.marks["forgotten"] for outcome in after)
    assert admit(scene, "3", "a")[0].reply_id
    assert reply_ids(admit(scene, "1", "a")) == [None]


def test_the_ids_of_a_scope_are_kept_until_its_last_tombstone_is_gone(scene: Scene) -> None:
    admit(scene, "1", "a")
    scene.settle(scene.take(), 1)
    admit(scene, "2", "b")
    in_use = f"{scene.space.root}reply_ids:scope"
    forget(scene)

    assert scene.lookup(scene.call("a", turn_id="1")) == (None,)
    assert reply_ids(admit(scene, "1", "a")) == [None], "the turn that used the id first has it still"
    assert admit(scene, "3", "a")[0].reply_id
    for _ in range(3):
        scene.settle(scene.take(), 1)
    forget(scene)
    assert not scene.store.redis.exists(in_use)
    assert reply_ids(admit(scene, "4", "a")) == [None]


def test_nothing_is_kept_of_a_scope_whose_ids_came_by_intent_alone(scene: Scene) -> None:
    """The stored call has no id; the turn that found it by its intent has one."""
    for turn, call_id in (("1", None), ("2", "a")):
        call = scene.call("x", turn_id="1")
        named = replace(call, call_id=call_id, identity=replace(call.identity, by_intent=True))
        scene.admit(named, turn=scene.turn(turn))
    assert admit(scene, "3", "a")[0].reply_id, "its id is in use"

    for _ in range(2):
        scene.settle(scene.take(), 1)
    forget(scene)

    assert not scene.store.redis.exists(f"{scene.space.root}reply_ids:scope")


def test_choosing_ids_takes_two_commands_a_submission_however_many_calls_it_has(
    redis_server: RealServer, namespace: str
) -> None:
    store = LiveStore(redis_server.url, namespace)
    scene = LiveScene(store)

    def commands(turn: str, calls: list[NewCall]) -> Counter[str]:
        before = _calls(scene)
        scene.admit(*calls, turn=scene.turn(turn))
        return _calls(scene) - before

    def asked(turn: str) -> list[NewCall]:
        return [scene.call(name, turn_id=turn, position=at) for at, name in enumerate("abc")]

    nameless = commands("1", [replace(call, call_id=None) for call in asked("1")])
    new, recurring = commands("2", asked("2")), commands("3", asked("3"))
    store.close()

    assert new - nameless == recurring - nameless == Counter({"hmget": 1, "hset": 1})


def _calls(scene: Scene) -> Counter[str]:
    """How often each command that reads or writes a hash was run, in scripts too."""
    stats = scene.store.redis.info("commandstats")
    return Counter(
        {name: stats[f"cmdstat_{name}"]["calls"] for name in ("hmget", "hset") if f"cmdstat_{name}" in stats}
    )
