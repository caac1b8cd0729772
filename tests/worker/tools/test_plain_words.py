"""Whatever a tool says, the store can hold it: NaN, lone surrogates, objects, depth."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes.workers import Site
from tests.support.servers.redis_server import RealServer
from toolonce.store.model.plain import plain_value, whole_text
from toolonce.store.model.states import State
from toolonce.stream.turns.turn import ToolCall
from toolonce.worker import Call, Deny, Registry, ToolError

HALF = os.fsdecode(b"/tmp/\xff.txt")
WHOLE = "/tmp/\ufffd.txt"
NAN, INF = float("nan"), float("inf")


@pytest.fixture
def site(redis_server: RealServer, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("TOOLONCE_KEYS", "k" * 32)
    opened = Site(redis_server.url, namespace, tmp_path)
    yield opened
    opened.close()


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def deep(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"in": value}
    return value


CYCLE: dict[str, Any] = {}
CYCLE["again"] = [CYCLE, CYCLE]
DETAILS: dict[str, tuple[Any, Any]] = {
    "nan": ({"a": NAN, "b": [INF, -INF]}, {"a": "NaN", "b": ["Infinity", "-Infinity"]}),
    "surrogates": ({HALF: HALF}, {WHOLE: WHOLE}),
    "objects": ({"day": date(2030, 1, 2), "of": {1}}, {"day": "2030-01-02", "of": [1]}),
    "names": ({1: "a", None: "b"}, {"1": "a", "None": "b"}),
    "a list": ([1, NAN], {"details": [1, "NaN"]}),
    "a text": ("why", {"details": "why"}),
    "hostile": ({"e": UnprintableError()}, {"e": "(its text cannot be read)"}),
}


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_details_of_any_kind_are_stored_as_json(site: Site, isolation: Any) -> None:
    """faults 24"""
    tools = Registry()

    @tools.tool(isolation=isolation)
    def refuse(kind: str) -> None:
        raise ToolError(f"no {HALF}", code=HALF, details=DETAILS[kind][0])

    with site.worker_here(tools):
        keys = {kind: site.submit("refuse", kind=kind) for kind in DETAILS}
        records = {kind: site.wait_for(key, State.FAILED, State.UNKNOWN) for kind, key in keys.items()}

    for kind, record in records.items():
        stored = json.loads(record.fields.error, parse_constant=pytest.fail)
        assert stored == {"code": WHOLE, "message": f"no {WHOLE}", "details": DETAILS[kind][1]}


def test_details_of_any_depth_come_to_rest_and_are_read_by_the_scripts(site: Site) -> None:
    """faults 24"""
    tools = Registry()

    @tools.tool
    def refuse(levels: int) -> None:
        raise ToolError("deep", details=deep(levels) if levels else CYCLE)

    with site.worker_here(tools):
        keys = [site.submit("refuse", levels=levels) for levels in (0, 90, 900, 5_000)]
        records = [site.wait_for(key, State.FAILED, State.UNKNOWN) for key in keys]

    assert [record.state for record in records] == [State.FAILED] * 4
    assert all(len(record.fields.error) < 100_000 for record in records)


@pytest.mark.parametrize(
    "speak",
    [
        lambda call: call.progress(0.5, HALF),
        lambda call: call.progress(NAN, "half"),
        lambda call: call.progress(1.0000001),
        lambda call: call.progress(-0.1, UnprintableError()),
        lambda call: call.progress("most of it"),
        lambda call: call.logger.warning("%s %s", HALF),
        lambda call: call.logger.warning("%s", UnprintableError()),
        lambda call: call.logger.warning(HALF, extra={"reason": HALF}),
    ],
)
@pytest.mark.parametrize("secret", [(), ("key",)])
def test_no_report_of_a_handler_leaves_its_call_unknown(
    site: Site, speak: Callable[[Call], None], secret: tuple[str, ...]
) -> None:
    """faults 24: the effect is in the middle of happening."""
    tools = Registry()

    @tools.tool(secret=secret)
    def work(key: str, *, call: Call) -> str:
        speak(call)
        return HALF

    with site.worker_here(tools):
        record = site.wait_for(site.submit("work", key="k1"), State.SUCCEEDED, State.UNKNOWN)

    assert record.state is State.SUCCEEDED
    assert json.loads(record.fields.result) == WHOLE


def test_a_progress_that_is_no_number_is_told_as_text(site: Site) -> None:
    """faults 24"""
    tools = Registry()

    @tools.tool
    def work(*, call: Call) -> str:
        call.progress(NAN, HALF)
        return "done"

    with site.worker_here(tools):
        key = site.submit("work")
        site.wait_for(key, State.SUCCEEDED)

    told = site.connection.command("XREVRANGE", f"{{{site.namespace}}}:events", "+", "-")
    said = [json.loads(entry[1][3]) for entry in told]
    assert [event["reason"] for event in said if event["op"] == "progress"] == [f"nan {WHOLE}"]


def test_words_of_a_hook_and_echoes_of_a_call_are_stored_whole(site: Site) -> None:
    """faults 24"""
    tools = Registry()

    @tools.tool
    def work() -> None: ...

    @tools.authorize
    def judge(call: Call, arguments: dict[str, Any]) -> Deny:
        return Deny(f"not {HALF}")

    call = ToolCall("work", {}, "c", "function", 0, echo={"caller": {HALF: NAN}})
    with site.worker_here(tools):
        batch = site.client.submit_calls([call], turn_id="turn-echo")
        record = site.wait_for(batch.outcomes[0].key, State.REFUSED)

    assert WHOLE in record.fields.error or "\\ufffd" in record.fields.error
    assert json.loads(record.fields.echo, parse_constant=pytest.fail) == {"caller": {WHOLE: "NaN"}}


def test_pairs_that_came_in_two_halves_are_one_character_again() -> None:
    assert whole_text("\ud83d\ude00") == "\U0001f600"
    assert plain_value({"n": 10**40, "t": True, "f": 0.5}) == {"n": 10**40, "t": True, "f": 0.5}
