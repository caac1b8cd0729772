"""A tool whose published spec this release cannot read concerns the calls of that tool alone."""

from __future__ import annotations

import json

import pytest

from tests.support.stream.harness import Bench, call, calls
from tests.support.stream.inbox import Inbox
from toolonce.store.model.errors import CorruptRecord
from toolonce.stream.inbox.consumer import Consumer

NEWER = json.dumps({"name": "later", "version": "1", "effect": "of a release to come"})


def publish_unreadable(bench: Bench, text: str = NEWER) -> None:
    root, redis = bench.store.space.root, bench.store.redis
    redis.hset(f"{root}tools", "later\n1", text)
    redis.hset(f"{root}newest", "later", "1")
    redis.incr(f"{root}tools_version")


@pytest.mark.parametrize("text", [NEWER, "{", "[]", "7"])
def test_a_spec_that_cannot_be_read_keeps_no_other_tool_from_being_called(bench: Bench, text: str) -> None:
    """faults 11: a sibling; every submission of every tenant failed."""
    publish_unreadable(bench, text)
    assert bench.client.submit_calls(calls(1), turn_id="t1").outcomes[0].pending


def test_a_call_of_that_tool_is_not_stored_and_the_way_out_is_said(bench: Bench) -> None:
    publish_unreadable(bench)
    with pytest.raises(CorruptRecord, match="spec of tool 'later' cannot be read by this release; upgrade"):
        bench.client.submit_calls([call("later")], turn_id="t1")
    assert bench.admitted == 0


def test_entries_of_other_tools_are_not_quarantined_for_it(bench: Bench) -> None:
    """faults 11: a sibling; each entry of each tenant was put aside."""
    publish_unreadable(bench)
    consumer, box = Consumer(bench.store.connection, name="one"), Inbox(bench)
    good = box.add(turn="1", calls=[{"name": "look"}])
    bad = box.add(turn="2", calls=[{"name": "later"}])
    assert consumer.step(0.01) == 2
    assert [answer["state"] for answer in box.answers(good)] == ["admitted"]
    assert [answer["state"] for answer in box.answers(bad)] == ["quarantined"]
    consumer.close()
