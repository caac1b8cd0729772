"""The Lua files as text: headers, replies against Python's names, flags, keys."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from tests.support.servers.redis_server import RealServer
from toolonce.store.model.record import ANSWER_FIELDS, PAGE_FIELDS, RUN_FIELDS
from toolonce.store.operations.operation import Script, load, names

OPERATIONS = names()
# These must go through when Redis is full: they do and end admitted work, or let people end it.
ALLOWED_WHEN_FULL = {
    "accept_loss", "adopt", "reconcile_later", "begin", "cancel", "claim", "control", "decide", "declare", "deliver",
    "follow", "forget", "forget_inbox", "fence_watermark", "interrupt", "defer_reconcile", "publish", "purge",
    "quarantine", "reconcile", "reclaim", "release", "renew", "replicas", "repush", "resolve", "settle", "take", "tick",
    "watermark",
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_script_says_what_it_does_takes_returns_and_keeps(name: str) -> None:
    lines = body_of(load(name)).splitlines()
    assert lines[0].startswith(f"-- {name}: ")
    head = "\n".join(line for line in lines if line.startswith("--"))
    for word in ("-- uses: ledger", "-- KEYS[1] = ", "-- ARGV    = ", "-- RETURNS ", "-- INVARIANT "):
        assert head.count(word) == 1, word


def body_of(script: Script) -> str:
    """The operation itself: what follows the preludes."""
    return script.text[script.text.index(f"-- {script.name}: ") :]


@pytest.mark.parametrize("name", OPERATIONS)
def test_only_what_ends_work_runs_when_redis_is_full(name: str) -> None:
    assert load(name).text.startswith("#!lua flags=allow-oom\n") == (name in ALLOWED_WHEN_FULL)


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_script_compiles_on_a_real_server(redis_server: RealServer, name: str) -> None:
    with redis_server.client() as client:
        assert client.script_load(load(name).text) == load(name).sha


@pytest.mark.parametrize(
    ("name", "function", "read", "expected"),
    [
        ("turn", "answer(call)", r"'(\w+)'", ANSWER_FIELDS),
        ("claim", "run_fields(got)", r"got\.(\w+)\s+or\s+false", RUN_FIELDS),
    ],
)
def test_the_fields_of_a_reply_stand_in_the_order_that_python_reads(
    name: str, function: str, read: str, expected: tuple[str, ...]
) -> None:
    body = re.search(rf"local function {re.escape(function)}\n(.*?)\nend", load(name).text, re.DOTALL)
    assert body
    assert tuple(re.findall(read, body[1])) == expected


def test_a_page_line_has_the_fields_that_python_reads() -> None:
    line = re.search(r"function page_fields\(call\)\n  return fields\(call,(.*?)\)", load("page").text, re.DOTALL)
    assert line
    assert tuple(re.findall(r"'(\w+)'", line[1])) == PAGE_FIELDS


@pytest.mark.parametrize("name", OPERATIONS)
def test_time_comes_from_redis_alone(name: str) -> None:
    text = load(name).text
    assert text.count("redis.call('TIME')") == 1
    assert "os." not in text
    assert "math.random" not in text


@pytest.mark.parametrize("name", OPERATIONS)
def test_no_script_names_a_key_without_the_root_of_its_namespace(name: str) -> None:
    """A key is a root with a name behind it; what is given as a text alone is the word of a command."""
    literal = re.findall(r"redis\.p?call\('(\w+)',\s*['\"]", load(name).text)

    assert set(literal) <= {"INFO", "XINFO", "XGROUP", "XREADGROUP"}


@pytest.mark.parametrize("name", OPERATIONS)
def test_no_script_walks_through_the_whole_store(name: str) -> None:
    assert not re.search(r"'(KEYS|SCAN|SSCAN|HSCAN|ZSCAN|LPOS|FLUSHDB)'", load(name).text)


@pytest.mark.parametrize("name", OPERATIONS)
def test_state_changes_in_one_place_only(name: str) -> None:
    text = load(name).text
    writes = re.findall(r"'HSET', [^\n]*'state',", text)
    assert len(writes) == text.count("local function write_state("), (
        "a script writes the state past `move`, and with it past counters, index and history"
    )


def test_only_moves_and_the_admission_that_indexes_many_calls_at_once_write_a_state() -> None:
    sources = {path.name: path.read_text("utf-8") for path in files("toolonce.store").joinpath("lua").iterdir()}
    writers = {name: source.count("write_state(") for name, source in sources.items() if "write_state(" in source}
    assert writers == {"_ledger.lua": 2, "_moves.lua": 1, "_usual_placement.lua": 1}  # the first is its definition


def test_a_script_is_sent_without_the_functions_that_it_never_comes_to() -> None:
    assert "function transition(" in load("settle").text
    assert "function lose(" in load("reclaim").text
    assert "function lose(" not in load("settle").text


def test_a_claim_makes_the_functions_of_its_rare_ends_only_where_it_comes_to_them() -> None:
    at_once, on_demand = load("claim").text.split("local function flow()\n")
    assert "function move_as_usual(" in at_once
    assert "function move(" not in at_once
    assert "function transition(" not in at_once
    assert "function transition(" in on_demand
