"""What must be true of a store between any two steps: every index agrees with the records, and nobody waits in vain.

Written from the catalogue of keys in store/model/keys.py and the guarantees, on purpose with none of the scripts' code.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from tests.support.store.clocked_store import ClockedStore
from toolonce.store.model import keys
from toolonce.store.model.controls import ControlKind, Controls
from toolonce.store.model.states import OPEN, State


def _documented() -> re.Pattern[str]:
    """The keys that the catalogue names, and the test's clock."""
    catalogue = str(keys.__doc__)
    heads = [line.split("  ")[0] for line in catalogue.splitlines() if line.startswith("<ns>:")]
    names = [name.removeprefix("<ns>").removeprefix(":") for head in heads for name in head.split(", ")]
    names += re.findall(r"<ns>:(\w+) lists", catalogue)
    return re.compile("|".join(re.sub("<[^>]+>", ".*", name) for name in (*names, "test:<clock>")), re.DOTALL)


_DOCUMENTED = _documented()

Records = dict[str, dict[str, str]]


class Index:
    """The namespace's keys, read once."""

    def __init__(self, store: ClockedStore) -> None:
        self.root = store.space.root
        self.name = store.space.name
        self._redis = store.redis
        self.keys: set[str] = {
            key.removeprefix(self.root) for key in store.redis.scan_iter(f"{self.root}*", count=1000)
        }
        self.records: Records = {
            key.removeprefix("call:"): store.redis.hgetall(self.root + key)
            for key in self.keys
            if key.startswith("call:")
        }

    def zset(self, key: str) -> dict[str, float]:
        return dict(self._redis.zrange(self.root + key, 0, -1, withscores=True)) if key in self.keys else {}

    def members(self, key: str) -> set[str]:
        return set(self._redis.smembers(self.root + key)) if key in self.keys else set()

    def hash(self, key: str) -> dict[str, str]:
        return dict(self._redis.hgetall(self.root + key)) if key in self.keys else {}

    def named(self, prefix: str) -> list[str]:
        return [key.removeprefix(prefix) for key in self.keys if key.startswith(prefix)]

    def in_state(self, *states: str) -> Records:
        return {call: record for call, record in self.records.items() if record["state"] in states}


def _ids(index: Index) -> None:
    for scope in {record["scope"] for record in index.records.values()}:
        with_id = [record for record in index.records.values() if record["scope"] == scope and record.get("call_id")]
        in_use = index.hash(f"reply_ids:{scope}")
        assert int(in_use.pop("", 0)) == len(with_id), "the scope's records with an id are counted wrong"
        went = {record.get("reply_id") or record["call_id"] for record in with_id}
        assert went <= in_use.keys(), f"ids that are not noted as in use: {went - in_use.keys()}"


def audit(store: ClockedStore) -> None:
    """Raise AssertionError where the store contradicts itself."""
    index = Index(store)
    undocumented = {key for key in index.keys if not _DOCUMENTED.fullmatch(key)}
    assert not undocumented, f"keys that store/model/keys.py does not know: {undocumented}"
    checks = (
        _states, _counters, _running, _queued, _queued_by_tenant, _held, _limits, _woken_for_rates,
        _parked, _lanes, _followers, _ids, _unique,
    )  # fmt: skip
    for check in checks:
        check(index)


def _states(index: Index) -> None:
    for state in State:
        listed = index.zset(f"in:{state}").keys() | index.zset(f"tombs:{state}").keys()
        if state is State.RUNNING:
            assert not listed, "those that run have leases for that"
            continue
        assert listed == index.in_state(state).keys(), f"the index of {state} disagrees with the records"
    assert all(state.is_settled for state in State if index.zset(f"tombs:{state}"))
    asked = {call for tool in index.named("reconcile:") for call in index.zset(f"reconcile:{tool}")}
    assert asked == index.in_state("unknown").keys(), "every unknown call, and no other, awaits its reconcile"


def _counters(index: Index) -> None:
    counts = {name: int(value) for name, value in index.hash("counts").items()}
    in_state = {
        state: sum(value for name, value in counts.items() if name.startswith(f"tool:{state}:")) for state in State
    }
    is_open = sum(in_state[state] for state in OPEN)
    settled = sum(value for state, value in in_state.items() if state.is_settled)
    assert counts.get("admitted", 0) == settled + is_open, f"admitted = settled + open: {counts}"
    for state in State:
        total = in_state[state]
        assert total >= len(index.in_state(state)), f"counter of {state}"
        assert state.is_settled or total == len(index.in_state(state)), f"counter of {state}"


def _running(index: Index) -> None:
    running = index.in_state("running")
    assert index.zset("leases").keys() == running.keys(), "every running call, and no other, has a lease"
    fences = [int(record["fence"]) for record in running.values()]
    assert len(set(fences)) == len(fences), "two runs under one fence"


def _queued(index: Index) -> None:
    places: dict[str, list[str]] = {call: [] for call in index.in_state("queued")}
    for key in ["delayed", *(f"pushed:{q}" for q in index.named("pushed:"))]:
        for call in index.zset(key):
            places.setdefault(call, []).append(key)
    for limit in index.named("waiting:"):
        for call in index.zset(f"waiting:{limit}"):
            places.setdefault(call, []).append(f"waiting:{limit}")
            assert index.records[call].get("waits") == limit
    wrong = {call: found for call, found in places.items() if call not in index.in_state("queued") or len(found) != 1}
    assert not wrong, f"a queued call, and no other, waits in exactly one place: {wrong}"
    late = index.zset("deadlines").keys() - index.in_state("queued").keys()
    assert all(index.records[call]["reason"] == "no_worker" for call in late), "deadlines of calls that do not wait"


def _queued_by_tenant(index: Index) -> None:
    counted = {tenant: int(number) for tenant, number in index.hash("queued_by_tenant").items()}
    assert counted == Counter(record["tenant"] for record in index.in_state("queued").values())


def _held(index: Index) -> None:
    held = index.in_state("held")
    asked = {call: record for call, record in held.items() if "follows" not in record}
    for_approval = {call for call, record in asked.items() if record.get("reason", "") in ("approval", "duplicate")}
    assert index.zset("approvals").keys() == for_approval, "every call held for approval, and no other, has a lifetime"
    without = {call for tool in index.named("no_worker:") for call in index.members(f"no_worker:{tool}")}
    assert without == {call for call, record in held.items() if record.get("reason", "") == "no_worker"}
    held_back = {call for call, record in held.items() if record.get("reason", "") == "store_went_back"}
    assert index.members("held_back") == held_back
    for call, record in held.items():
        if record.get("reason", "") == "order":
            assert not _is_next(index, call, record), f"{call} is held for order, but it is its turn"


def _is_next(index: Index, call: str, record: dict[str, Any]) -> bool:
    lanes = [lane for lane in record.get("lanes", "").split("\n") if lane]
    heads = [min(index.zset(f"lane:{lane}").items(), key=lambda item: item[1])[0] for lane in lanes]
    return all(head == call for head in heads) and int(record.get("predecessors") or 0) == 0


def _limits(index: Index) -> None:
    running = index.in_state("running").keys()
    controls = Controls.from_stored(index.hash("controls"))
    for limit in index.named("slots:"):
        assert index.members(f"slots:{limit}") <= running, f"a slot of {limit} is held by a call that does not run"
    for limit in index.named("waiting:"):
        assert limit in index.members("saturated_rates" if limit.startswith("rate:") else "saturated_limits"), (
            f"the sweep does not know that calls wait for {limit}"
        )
        if limit == "replicas" or limit.startswith(("rate:", "pause ")):
            continue  # these wait for something that no call passes on
        cap = controls.in_force(ControlKind.LIMIT, limit)
        is_full = cap is not None and len(index.members(f"slots:{limit}")) >= int(cap)
        woken = any(record.get("woken") == limit for record in index.in_state("queued").values())
        assert is_full or woken, f"calls wait for a slot of {limit}, there is one, and nobody was woken"


def _parked(index: Index) -> None:
    deadlines = index.zset("deadlines")
    for call, record in index.in_state("queued").items():
        is_parked = record.get("waits", "").startswith("pause ")
        assert (record.get("reason", "") == "paused") == is_parked
        if is_parked:
            sort, _, name = record["waits"].removeprefix("pause ").partition(":")
            assert record[sort] == name, f"{call} is parked by a pause that does not concern it"
            assert call not in deadlines, f"{call} is parked, and its queue deadline goes on"
            assert "deadline_at" not in record


def _woken_for_rates(index: Index) -> None:
    queued = index.in_state("queued")
    for limit in index.named("woken:"):
        woken = {call for call, record in queued.items() if record.get("woken") == limit}
        assert index.zset(f"woken:{limit}").keys() == woken, f"a start of {limit} is left to a call that is not woken"


def _lanes(index: Index) -> None:
    for lane in index.named("lane:"):
        calls = index.zset(f"lane:{lane}")
        assert calls.keys() <= index.in_state(*OPEN).keys(), "a settled call still stands in a lane"
        running = calls.keys() & index.in_state("running").keys()
        assert len(running) <= 1, f"two calls of the lane {lane} run at once"


def _unique(index: Index) -> None:
    unfinished = index.zset("unique_unfinished").keys()
    listed: set[str] = set()
    for key in index.named("unique:"):
        calls = {call: place for call, place in index.zset(f"unique:{key}").items() if place < float("inf")}
        by_key = [call for call, place in calls.items() if "unique_by" in index.records[call]]
        assert by_key in ([], [*calls]), "a unique key is shared with calls that are only equal"
        if not by_key:
            assert calls.keys() <= index.in_state(*OPEN).keys()
            continue
        first, *followers = sorted(calls, key=lambda call: calls[call])
        assert [place == 0 for place in sorted(calls.values())] == [True] + [False] * len(followers), calls
        listed |= set(followers)
        state = State(index.records[first]["state"])
        for follower in followers:
            told = index.records[follower]
            assert (told["state"], told["reason"]) == ("held", "duplicate")
            if key not in unfinished:
                assert state in OPEN, f"{follower} follows {first}, which is at rest"
                assert (told["follows"], "first_unknown" in told) == (first, state is State.UNKNOWN)
    following = {call for call, record in index.in_state("held").items() if "follows" in record}
    assert following == listed, "every call that follows another one, and no other, stands behind a unique key"
    active = index.in_state("queued", "running", "unknown")
    without = {call for call, record in active.items() if "unique_by" in record} - {
        call for key in index.named("unique:") for call, place in index.zset(f"unique:{key}").items() if place == 0
    }
    assert not without, f"calls that may run without their unique key: {without}"


def _followers(index: Index) -> None:
    for call in index.named("followers:"):
        assert index.records[call]["state"] in ("held", "queued", "running"), "followers of a call that is at rest"
