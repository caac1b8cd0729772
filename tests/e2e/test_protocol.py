"""PROTOCOL.md is held to the code: its commands work as they stand, its tables list what there is."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import redis

from tests.support.servers.redis_server import RealServer
from tests.support.store.scene import spec
from tests.support.stream.harness import Bench
from toolonce.store.model.states import SETTLED, State
from toolonce.stream.inbox.consumer import Consumer
from toolonce.stream.inbox.entry import ENTRY_BYTES, KNOWN
from toolonce.stream.turns.turn import DIALECTS
from toolonce.stream.wire.limits import TurnLimits

TEXT = (Path(__file__).resolve().parents[2] / "PROTOCOL.md").read_text("utf-8")


def section(title: str) -> str:
    return TEXT.split(f"## {title}\n")[1].split("\n## ")[0]


def first_cells(table_of: str) -> set[str]:
    rows = re.findall(r"^\| (`[^|]*) \|", table_of, re.MULTILINE)
    return {word for row in rows for word in re.findall(r"`(\w+)`", row)}


def test_the_commands_of_the_page_have_a_call_run(redis_server: RealServer) -> None:
    bench = Bench(redis_server.url, "toolonce", spec("add"))
    consumer = Consumer(bench.store.connection, name="one")
    with redis.Redis.from_url(redis_server.url, decode_responses=True) as client:
        [commands] = re.findall(r"```redis\n(.*?)```", TEXT, re.DOTALL)
        replies: list[Any] = [client.execute_command(*shlex.split(line)) for line in commands.splitlines()]
        consumer.step(0.01)
        bench.run_next(3)
        answers = f"{{toolonce}}:answers:acme:{replies[0]}"
        [[_, told]] = client.execute_command("XREAD", "BLOCK", 30000, "STREAMS", answers, 0)

    assert told[0][1] == {"state": "admitted", "calls": "1", "reply_ids": "{}"}
    assert (told[1][1]["id"], told[1][1]["state"], told[1][1]["result"]) == ("call_1", "succeeded", "3")
    _, _, fields = section("Read the answers").partition("Each answer for a call has these fields:\n\n")
    assert first_cells(fields.partition("\n\n")[0]) == set(told[1][1])
    consumer.close()
    bench.close()


def test_the_table_of_fields_lists_exactly_what_an_entry_may_have() -> None:
    assert first_cells(section("Submit")) == {name.decode() for name in KNOWN}


def test_every_dialect_state_and_limit_is_named() -> None:
    assert all(f"`{dialect}`" in TEXT for dialect in DIALECTS)
    assert {str(state) for state in (*SETTLED, State.UNKNOWN)} < first_cells(section("Read the answers"))
    assert f"{TurnLimits().calls:,} calls" in TEXT
    assert f"({ENTRY_BYTES:,} bytes)" in TEXT
