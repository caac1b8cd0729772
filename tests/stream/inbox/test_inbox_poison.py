"""One entry, one tenant or one name in the list can never hold up the others' entries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes.processes import Child
from tests.support.stream.harness import Bench
from tests.support.stream.inbox import Inbox
from toolonce.store.model.errors import StoreFull, StoreUnavailable
from toolonce.store.schema.validation import validate as validate_by_schema
from toolonce.stream.inbox import consumer as inbox
from toolonce.stream.inbox import tenants
from toolonce.stream.inbox.consumer import GROUP, TRIES, Consumer
from toolonce.stream.inbox.entry import ENTRY_BYTES

# A consumer that dies at each entry with the scope "poison", as one does of a fault in an extension module.
DYING = """
import os, sys
from toolonce.store.connections.connection import Connection
from toolonce.stream.inbox import consumer as inbox

def read(fields, *more, **named):
    if fields.get(b"scope") == b"poison":
        open(sys.argv[3], "a").write("died\\n")
        os._exit(9)
    return read_entry(fields, *more, **named)

read_entry, inbox.read_entry, inbox.RETRY_MS = inbox.read_entry, read, 0
consumer = inbox.Consumer(Connection(sys.argv[1], namespace=sys.argv[2]), name="one")
while consumer.step(0.01) or consumer._looks_again:
    pass
"""


def pay(number: int) -> dict[str, Any]:
    return {"name": "pay", "arguments": {"n": number}, "id": "a"}


@pytest.fixture
def box(bench: Bench) -> Inbox:
    return Inbox(bench)


@pytest.fixture
def consumer(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Iterator[Consumer]:
    monkeypatch.setattr(inbox, "RETRY_MS", 0)
    consumer = Consumer(bench.store.connection, name="one")
    yield consumer
    consumer.close()


def test_whatever_is_raised_while_one_entry_is_judged_concerns_that_entry_alone(
    box: Inbox, consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """faults 11"""

    def validate(schema: Any, arguments: Any) -> Any:
        if arguments == {"n": 13}:
            raise OverflowError("13 is the secret")
        return validate_by_schema(schema, arguments)

    monkeypatch.setattr("toolonce.stream.harness.admission_rules.validate_here", validate)
    poison = box.add(scope="talk", turn="0", calls=[pay(13)])
    good = [box.add(scope="talk", turn=str(n), calls=[pay(n)]) for n in range(1, 4)]
    other = Inbox(box.bench, "umbrella")
    others = other.add(scope="talk", turn="1", calls=[pay(1)])
    for _ in range(TRIES):
        assert box.quarantined() == []
        consumer.step(0.01)

    [(_, entry, reason)] = box.quarantined()
    assert entry == poison
    assert "OverflowError at test_inbox_poison.py:" in reason
    assert "secret" not in reason
    assert [len(box.answers(entry)) for entry in good] == [1, 1, 1]
    assert len(other.answers(others)) == 1
    assert consumer.step(0.01) == 0


def test_an_entry_that_kills_its_consumer_is_quarantined_after_a_few_deaths(
    box: Inbox, consumer: Consumer, tmp_path: Path
) -> None:
    """faults 11: tries are counted where no death can undo them; what was taken with the entry is not blamed."""
    good = [box.add(scope="talk", turn="before", calls=[pay(0)])]
    poison = box.add(scope="poison", turn="1", calls=[pay(1)])
    good += [box.add(scope="talk", turn=str(n), calls=[pay(n)]) for n in range(3)]
    deaths = tmp_path / "deaths"
    codes = []
    for _ in range(TRIES + 1):
        with Child.python("-c", DYING, box.bench.url, box.bench.namespace, str(deaths)) as child:
            codes.append(child.wait())

    assert codes == [9] * TRIES + [0]
    assert deaths.read_text().splitlines() == ["died"] * TRIES
    assert [(entry, "its consumer died" in reason) for _, entry, reason in box.quarantined()] == [(poison, True)]
    assert [len(box.answers(entry)) for entry in good] == [1] * 4
    assert box.redis.xlen(box.key) == 0


def test_an_entry_beyond_the_bound_is_quarantined_without_being_copied(box: Inbox, consumer: Consumer) -> None:
    """faults 11: stored with escapes it would pass the size at which the server drops the connection."""
    large = box.add(scope="talk", turn="1", calls="x" * ENTRY_BYTES)
    good = box.add(scope="talk", turn="2", calls=[pay(1)])
    assert consumer.step(0.01) == 2

    [(_, entry, reason)] = box.quarantined()
    assert (entry, f"at most {ENTRY_BYTES:,} are read" in reason) == (large, True)
    assert len(box.answers(good)) == 1
    [(_, kept)] = box.redis.xrange(f"{{{box.bench.namespace}}}:quarantine")
    assert int(kept["bytes"]) > ENTRY_BYTES
    assert 0 < len(kept["calls"]) < 20_000


def test_a_store_that_goes_away_counts_no_try(box: Inbox, consumer: Consumer, monkeypatch: pytest.MonkeyPatch) -> None:
    """faults 11"""
    entries = [box.add(scope="talk", turn=str(n), calls=[pay(n)]) for n in range(2)]

    def away(*_: Any) -> Any:
        raise StoreUnavailable("no answer")

    for _ in range(TRIES + 1):
        with monkeypatch.context() as patch:
            patch.setattr(inbox, "advance", away)
            patch.setattr(box.bench.store.connection, "ping", away)
            with pytest.raises(StoreUnavailable):
                consumer.step(0.01)
    while consumer.step(0.01):
        pass

    assert [len(box.answers(entry)) for entry in entries] == [1, 1]
    assert box.quarantined() == []


def test_while_memory_is_short_entries_stay_in_the_inbox_and_are_not_sent_about(box: Inbox, consumer: Consumer) -> None:
    """faults 15: consumers look at the memory themselves, before they take an entry into hand."""
    flags = f"{{{box.bench.namespace}}}:flags"
    entry = box.add(turn="1", calls=[{"name": "look"}])
    box.redis.hset(flags, "full", "1")
    with pytest.raises(StoreFull, match="near its memory limit"):
        consumer.step(0.01)
    assert not box.redis.xinfo_groups(box.key)
    box.redis.hdel(flags, "full")
    assert consumer.step(0.01) == 1
    assert len(box.answers(entry)) == 1


def test_entries_that_fail_again_and_again_keep_no_other_tenants_left_entry_waiting(
    box: Inbox, consumer: Consumer
) -> None:
    """faults 13: what a dead consumer left behind is taken up tenant by tenant."""
    other = Inbox(box.bench, "zeta")
    for place in (box, other):
        place.redis.xgroup_create(place.key, GROUP, "0", mkstream=True)
    for number in range(20):
        box.add(turn=str(number), calls=[pay(number)])
    entry = other.add(turn="1", calls=[pay(1)])
    for place in (box, other):
        place.redis.xreadgroup(GROUP, "one", {place.key: ">"})
    for _ in range(3):
        consumer.step(0.01)
    assert len(other.answers(entry)) == 1


def test_a_flood_of_names_without_an_inbox_delays_nobody_and_is_forgotten(
    box: Inbox, consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """faults 13: each step looks at a bounded number of names, and at those with entries first."""
    listed = f"{{{box.bench.namespace}}}:inboxes"
    box.add(scope="talk", turn="0", calls=[pay(0)])
    consumer.step(0.01)
    box.redis.sadd(listed, *(f"x{number}" for number in range(5000)))
    entry = box.add(scope="talk", turn="1", calls=[pay(1)])
    assert consumer.step(0.01) == 1
    assert len(box.answers(entry)) == 1

    monkeypatch.setattr(tenants, "GRACE_S", 0)
    for _ in range(2 * 5000 // tenants.WINDOW + 2):
        consumer.step(0.01)
    assert box.redis.smembers(listed) == {"acme"}
    assert len(box.redis.keys(f"{{{box.bench.namespace}}}:inbox:*")) == 1


def test_a_tenant_that_lists_itself_before_its_first_entry_is_served(box: Inbox, consumer: Consumer) -> None:
    """faults 13"""
    box.redis.sadd(f"{{{box.bench.namespace}}}:inboxes", "acme")
    consumer.step(0.01)
    entry = box.redis.xadd(box.key, {"turn": "1", "calls": '[{"name": "look"}]'})
    assert consumer.step(0.01) == 1
    assert len(box.answers(entry)) == 1


def test_an_inbox_that_was_empty_for_long_is_forgotten_and_comes_back_with_its_next_entry(
    box: Inbox, consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """faults 13"""
    box.add(scope="talk", turn="0", calls=[pay(0)])
    consumer.step(0.01)
    monkeypatch.setattr(tenants, "EMPTY_MS", -60_000)
    consumer.step(0.01)
    assert box.redis.exists(box.key, f"{{{box.bench.namespace}}}:inboxes") == 0

    again = box.add(scope="talk", turn="1", calls=[pay(1)])
    monkeypatch.undo()
    assert consumer.step(0.01) == 1
    assert len(box.answers(again)) == 1


def test_a_tenant_with_many_entries_delays_no_other(box: Inbox, consumer: Consumer) -> None:
    """faults 13"""
    for number in range(100):
        box.add(scope="talk", turn=str(number), calls=[pay(number)])
    other = Inbox(box.bench, "zeta")
    entry = other.add(scope="talk", turn="1", calls=[pay(1)])
    taken = consumer.step(0.01)

    assert len(other.answers(entry)) == 1
    assert taken < 20, "a bounded number in one step"


def test_entries_that_wait_for_room_take_no_more_than_a_bounded_number_into_hand(
    box: Inbox, consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """faults 13"""
    consumer.limits["queue_limit"] = 1
    for number in range(300):
        box.add(scope="talk", turn=str(number), calls=[pay(number)])
    for _ in range(60):
        consumer.step(0.01)

    assert box.redis.xpending(box.key, GROUP)["pending"] <= 200
    assert box.quarantined() == []
    consumer.limits["queue_limit"] = 1000
    while consumer.step(0.01):
        pass
    assert box.bench.admitted == 300


def test_a_stored_call_that_cannot_be_read_quarantines_its_entry_and_blocks_nobody(
    box: Inbox, consumer: Consumer
) -> None:
    fields = {"scope": "talk", "turn": "1", "calls": [pay(1)]}
    box.add(**fields)
    consumer.step(0.01)
    box.redis.hset(f"{{{box.bench.namespace}}}:call:{box.bench.run_next().call}", "result", "{")
    entry, good = box.add(**fields), box.add(scope="talk", turn="good", calls=[pay(1)])
    assert consumer.step(0.01) == 2
    assert [(entry, "cannot be read" in reason) for _, entry, reason in box.quarantined()] == [(entry, True)]
    assert len(box.answers(good)) == 1


def test_a_tenants_name_that_could_name_another_is_not_read_and_stops_nobody(
    bench: Bench, box: Inbox, consumer: Consumer, caplog: pytest.LogCaptureFixture
) -> None:
    strange = [Inbox(bench, tenant) for tenant in ("acme/talk", "acme:x", "a\nb", "")]
    entries = [each.add(scope="", turn="1", calls=[pay(1)]) for each in strange]
    box.redis.sadd(f"{{{bench.namespace}}}:inboxes", b"\xff")
    good = box.add(scope="talk", turn="1", calls=[pay(1)])

    assert consumer.step(0.01) + consumer.step(0.01) == 1
    assert len(box.answers(good)) == 1
    assert [each.answers(entry) for each, entry in zip(strange, entries, strict=True)] == [[]] * 4
    assert caplog.text.count("5 invalid tenant names are removed from the list of inboxes") == 1
    assert bench.store.redis.smembers(f"{{{bench.namespace}}}:inboxes") == {"acme"}
