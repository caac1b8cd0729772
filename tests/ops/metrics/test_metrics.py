"""Metrics that stay true when a worker is killed, and counters inside a harness."""

from __future__ import annotations

import logging
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from tests.support.processes.command_line import CommandLine
from tests.support.processes.processes import Child
from tests.support.servers.redis_server import RealServer
from tests.support.store.live_store import LiveScene
from tests.support.store.scene import spec
from tests.support.wait import wait_until
from toolonce.ops.metrics.event_metrics import EventMetrics
from toolonce.ops.metrics.events import Event
from toolonce.ops.metrics.harness_metrics import NAMES_MOST, CountingHandler, count_logs
from toolonce.stream.decoding.decoder import TurnDecoder
from toolonce.stream.harness.client import Client
from toolonce.stream.turns.turn import ToolCall

TRANSCRIPTS = Path(__file__).parents[3] / "ops" / "demo" / "transcripts"
APP = """
import time
from pathlib import Path
from toolonce.worker.tools.registry import Registry
tools = Registry()

@tools.tool
def pay(cents: int) -> None:
    (Path(__file__).parent / "paid").touch()
    time.sleep(60)
"""


@pytest.fixture
def exporter(redis_server: RealServer, namespace: str) -> Iterator[Child]:
    place = ("--redis", redis_server.url, "--namespace", namespace)
    with Child.python("-m", "toolonce.ops", "metrics", "--listen", "127.0.0.1:0", *place) as child:
        yield child


def scrape(exporter: Child) -> dict[str, float]:
    url = exporter.wait_for_line(r"metrics at (\S+)").group(1)
    with urllib.request.urlopen(url, timeout=10) as reply:
        lines = reply.read().decode().splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))}


def test_metrics_tell_what_became_of_a_killed_workers_call(
    exporter: Child, redis_server: RealServer, namespace: str, tmp_path: Path, toolonce: CommandLine
) -> None:
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "calls.json").write_text('[{"name": "pay", "arguments": {"cents": 5}}]')
    assert scrape(exporter)["toolonce_up"] == 1
    place = ("--redis", redis_server.url, "--namespace", namespace)
    with Child.python("-m", "toolonce.ops", "work", "--tools", "app:tools", "--lease", "1s", *place, cwd=tmp_path) as w:
        w.wait_for_line("serves default")
        toolonce("submit", "--scope", "s", "--turn-id", "t", "--calls", str(tmp_path / "calls.json"), "--wait", "0")
        wait_until((tmp_path / "paid").exists, 20)
        w.kill9()
    wait_until(lambda: toolonce("recover", "--json").json.get("unknown") == 1, 20, "the lease is ended")

    wait_until(lambda: scrape(exporter).get('toolonce_lease_losses_total{tool="pay"}') == 1, 20, "the loss is counted")
    told = scrape(exporter)
    assert told["toolonce_unknown_calls"] == 1
    assert told['toolonce_calls{state="unknown",tool="pay"}'] == 1
    assert (told["toolonce_admitted_total"], told["toolonce_open_calls"], told["toolonce_balanced"]) == (1, 1, 1)
    assert told['toolonce_queue_delay_seconds_count{tool="pay"}'] == 1
    assert told['toolonce_run_seconds_count{tool="pay"}'] == 1
    assert told['toolonce_recovery_work_total{operation="lose"}'] == 1
    assert told['toolonce_oldest_seconds{state="unknown"}'] >= 0
    assert exporter.terminate() == 0


def test_one_reading_is_printed_in_the_exposition_format(scene: LiveScene, toolonce: CommandLine) -> None:
    scene.succeeded("a")

    said = toolonce("metrics", "--once")

    assert said.code == 0
    assert re.search(r"^toolonce_admitted_total 1.0$", said.out, re.MULTILINE)
    assert "# TYPE toolonce_calls gauge" in said.out


def test_times_are_measured_by_the_stores_clock() -> None:
    registry = CollectorRegistry()
    metrics = EventMetrics(registry)
    moves = [(1_000, "queued"), (3_000, "running"), (3_500, "queued"), (9_500, "running"), (9_600, "succeeded")]
    before: str | None = None
    for at, state in moves:
        metrics.feed(Event(b"", "call", {"at": at, "op": "x", "tool": "pay", "from": before, "to": state}))
        before = state

    def value(name: str) -> float | None:
        return registry.get_sample_value(name, {"tool": "pay"})

    assert value("toolonce_queue_delay_seconds_sum") == 2 + 6
    assert value("toolonce_run_seconds_sum") == pytest.approx(0.5 + 0.1)


@pytest.fixture
def counted() -> Iterator[CollectorRegistry]:
    registry = CollectorRegistry()
    handler: CountingHandler = count_logs(registry)
    yield registry
    logging.getLogger("toolonce.stream").removeHandler(handler)


def test_a_harness_counts_replays_and_conflicts_by_tool(
    counted: CollectorRegistry, scene: LiveScene, redis_server: RealServer, namespace: str
) -> None:
    scene.publish(spec("pay"))
    with Client(redis_server.url, scope="s", namespace=namespace) as client:
        client.submit_calls([ToolCall("pay", {"n": 1}, "a", "function", 0)], turn_id="t")
        scene.settle(scene.take(), 1)
        client.submit_calls([ToolCall("pay", {"n": 1}, "a", "function", 0)], turn_id="t")
        client.submit_calls([ToolCall("pay", {"n": 2}, "a", "function", 0)], turn_id="t")

    assert counted.get_sample_value("toolonce_replays_total", {"tool": "pay"}) == 1
    assert counted.get_sample_value("toolonce_conflicts_total", {"tool": "pay"}) == 1


def test_a_harness_counts_turns_that_ended_badly_by_dialect_and_outcome(counted: CollectorRegistry) -> None:
    decoder = TurnDecoder("anthropic")
    decoder.feed((TRANSCRIPTS / "cut.anthropic.sse").read_bytes())
    decoder.eof()
    whole = TurnDecoder("anthropic")
    whole.feed((TRANSCRIPTS / "weather.anthropic.sse").read_bytes())
    whole.eof()

    labels = {"dialect": "anthropic", "outcome": "truncated"}
    assert counted.get_sample_value("toolonce_turns_ended_badly_total", labels) == 1
    assert counted.get_sample_value("toolonce_turns_ended_badly_total", {**labels, "outcome": "completed"}) is None


def test_names_that_models_make_up_share_one_label(
    exporter: Child, redis_server: RealServer, namespace: str, scene: LiveScene
) -> None:
    scene.publish(spec("pay", schema={"type": "object", "required": ["cents"]}))
    assert scrape(exporter)["toolonce_up"] == 1

    with Client(redis_server.url, scope="s", namespace=namespace) as client:
        for number in range(3):
            calls = [ToolCall(f"made_up_{number}", {}, "a", "function", 0), ToolCall("pay", {}, "b", "function", 1)]
            client.submit_calls(calls, turn_id=f"t{number}")
    name = 'toolonce_transitions_total{operation="admit",source="",target="refused",tool="?"}'
    wait_until(lambda: scrape(exporter).get(name) == 3)
    counted = scrape(exporter)

    assert not [line for line in counted if "made_up" in line]
    assert counted['toolonce_calls{state="refused",tool="?"}'] == 3
    assert counted['toolonce_calls{state="refused",tool="pay"}'] == 3


def test_a_harness_counts_no_more_tools_than_metrics_can_bear() -> None:
    registry = CollectorRegistry()
    handler = CountingHandler(registry)
    for number in range(NAMES_MOST + 10):
        handler.emit(logging.makeLogRecord({"event": "replay", "tool": f"made_up_{number}"}))

    assert registry.get_sample_value("toolonce_replays_total", {"tool": "?"}) == 10


@pytest.mark.parametrize("place", ["127.0.0.1:99999", "nowhere.invalid:9464"])
def test_a_place_that_cannot_be_listened_at_is_named(toolonce: CommandLine, place: str) -> None:
    said = toolonce("metrics", "--listen", place)

    assert said.code == 2
    assert f"--listen '{place}'" in said.err
