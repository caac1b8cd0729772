"""Records of earlier releases are read, replayed, recovered and settled by this one.

Each release leaves a file tests/data/store-<release>.json behind; none is ever made again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes.command_line import CommandLine, Said
from tests.support.servers.redis_server import RealServer
from tests.support.store.live_store import LiveScene, LiveStore
from tests.support.store.store_dump import NAMESPACE, STORED, load, raw_client
from tests.support.wait import wait_until
from toolonce.store.model import identity
from toolonce.store.model.keys import Namespace
from toolonce.store.model.record import FIELDS, RecordFields
from toolonce.store.model.states import State
from toolonce.store.operations.admission import Identified
from toolonce.store.operations.queries import RECORD_VERSIONS

DUMPS = sorted((Path(__file__).parents[2] / "data").glob("store-*.json"))
SETTLED = {"succeeded": 0, "failed": None, "refused": None, "cancelled": None}
OPEN = {"held": "held", "unknown": "unknown", "running": "running", "queued": "queued"}


@pytest.fixture(params=DUMPS, ids=lambda path: path.stem)
def kept(request: pytest.FixtureRequest, own_server: RealServer) -> Iterator[LiveScene]:
    with raw_client(own_server.url) as client:
        load(client, json.loads(request.param.read_text()))
    store = LiveStore(own_server.url, NAMESPACE)
    yield LiveScene(store)
    store.close()


def asked_again(name: str) -> Identified:
    """The same call as it would be submitted today."""
    key = identity.call_key(NAMESPACE, "scope", f"turn-{name}", identity.reference(name, 1))
    return Identified(key, (identity.fingerprint("pay", {"id": name}),))


def test_every_release_has_left_its_records_here() -> None:
    assert "store-0.1.0" in {path.stem for path in DUMPS}


def test_a_repeat_finds_the_old_record_and_gets_the_old_answer(kept: LiveScene) -> None:
    names = [*SETTLED, *OPEN, "forgotten"]
    from toolonce.store.operations.admission import lookup

    found = kept.live.run(lookup(kept.space, [asked_again(name) for name in names]))

    states = {name: outcome and str(outcome.state) for name, outcome in zip(names, found, strict=True)}
    assert states == {**{name: name for name in (*SETTLED, *OPEN)}, "forgotten": "succeeded"}
    assert all(outcome and not outcome.conflict for outcome in found)
    first = found[0]
    assert first
    assert (first.value, type(first.value)) == (0, int)


def test_what_was_open_comes_to_rest(kept: LiveScene, toolonce: CommandLine, own_server: RealServer) -> None:
    def run(*words: str) -> Said:
        return toolonce(*words, place=["--redis", own_server.url, "--namespace", NAMESPACE])

    def in_doubt() -> set[str]:
        assert run("recover").code == 0
        return {row["call"] for row in run("calls", "--state", "unknown", "--json").json["calls"]}

    expected = {asked_again(name).key for name in ("unknown", "running")}
    wait_until(lambda: in_doubt() == expected, description="the lease, given again by another server, has run out")
    for key in expected:
        assert run("resolve", key, "--succeeded", "1", "--reason", "looked").code == 0
    assert run("approve", asked_again("held").key, "--yes").code == 0
    for _ in ("queued", "held"):
        kept.settle(kept.take(), 2)

    stats = run("stats", "--json").json
    assert (stats["open"], stats["balanced"]) == (0, True)


def test_old_records_are_shown_whole(kept: LiveScene, toolonce: CommandLine, own_server: RealServer) -> None:
    for name in (*SETTLED, *OPEN):
        key = asked_again(name).key
        shown = toolonce("call", key, "--json", place=["--redis", own_server.url, "--namespace", NAMESPACE]).json
        assert (shown["state"], shown["arguments"]) == (name, {"id": name})
        assert shown["history"]


def test_a_failed_call_of_an_old_release_runs_again(
    kept: LiveScene, toolonce: CommandLine, own_server: RealServer
) -> None:
    key = asked_again("failed").key
    place = ["--redis", own_server.url, "--namespace", NAMESPACE]

    assert toolonce("retry", key, "--reason", "r", place=place).code == 0
    assert kept.state(key) is State.QUEUED


@pytest.mark.parametrize("path", DUMPS, ids=lambda path: path.stem)
def test_each_field_that_a_release_has_stored_is_declared_and_read_by_its_type(path: Path) -> None:
    space = Namespace(NAMESPACE)
    records = [content for key, _, content in json.loads(path.read_text()) if key.startswith(space.record(""))]

    assert {name for record in records for name in record} - set(FIELDS) == set()
    assert {RecordFields(record).v for record in records} <= set(RECORD_VERSIONS)
    (whole,) = [record for record in records if record["turn"] == "turn-whole"]
    examples = {stored: read for stored, read in STORED.values() if stored != "1"}  # a version is stored as that, too
    typed = RecordFields(whole).typed(FIELDS)
    assert {name: typed[name] for name, stored in whole.items() if stored in examples} == {
        name: examples[stored] for name, stored in whole.items() if stored in examples
    }
