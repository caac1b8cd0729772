"""The drills of ops/RUNBOOK.md: each trouble made for real, and mended with the commands that the runbook names."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.processes.command_line import CommandLine, Said
from tests.support.servers.redis_server import RealServer
from tests.support.servers.sentinel import free_port
from tests.support.store.live_store import LiveScene, LiveStore
from tests.support.store.scene import spec
from tests.support.wait import wait_until

OLD, NEW = "an old key of 24 letters", "a new key of 24 letters!"


class Drill:
    """A scene on a server of its own, and the command line on it."""

    def __init__(self, server: RealServer, toolonce: CommandLine) -> None:
        self.server = server
        self._toolonce = toolonce
        self.store = LiveStore(server.url, "drill")
        self.scene = LiveScene(self.store)

    def __call__(self, *words: str) -> Said:
        return self._toolonce(*words, place=["--redis", self.server.url, "--namespace", "drill"])

    def findings(self) -> set[str]:
        return {finding["code"] for finding in self("doctor", "--json").json["findings"]}

    def submit(self, tmp: Path, *calls: Mapping[str, object], turn: str = "t") -> Said:
        path = tmp / "calls.json"
        path.write_text(json.dumps(calls))
        return self("submit", "--scope", "s", "--turn-id", turn, "--calls", str(path), "--wait", "0")


@pytest.fixture
def drill(own_server: RealServer, toolonce: CommandLine) -> Iterator[Drill]:
    made = Drill(own_server, toolonce)
    yield made
    made.store.close()


def test_a_tool_is_slowed_down_and_let_go_again(drill: Drill) -> None:
    drill.scene.publish(spec("pay", concurrency=9))
    running = [drill.scene.start(name) for name in "ab"]

    assert drill("limit", "tool:pay", "2", "--reason", "the bank asks").code == 0
    waiting = drill.scene.submit("c")
    drill.scene.claim(drill.scene.pop() or "")
    assert drill("call", waiting, "--json").json["limited_by"] == "tool:pay"
    assert "set_by_people" in drill.findings()
    drill("limit", "tool:pay", "--clear")
    drill.scene.tick()

    assert drill.scene.take().call == waiting
    assert len(running) == 2


def test_a_tool_is_stopped_at_night_and_let_go_in_the_morning(drill: Drill) -> None:
    drill.scene.publish(spec("pay"))
    running = drill.scene.start("a")

    assert drill("pause", "tool:pay", "--reason", "pays twice").code == 0
    waiting = drill.scene.submit("b")
    drill.scene.claim(drill.scene.pop() or "")
    assert drill("call", waiting, "--json").json["reason"] == "paused"
    assert {"paused"} <= drill.findings()
    assert [row["call"] for row in drill("calls", "--paused", "--json").json["calls"]] == [waiting]
    drill("cancel", running.call)
    assert drill.scene.record(running.call).fields.cancel_requested
    drill("resume", "tool:pay")
    drill.scene.tick()

    assert drill.scene.take().call == waiting


def test_a_tool_is_kept_to_a_quota(drill: Drill) -> None:
    search = spec("search", "read")
    drill.scene.publish(search)

    assert drill("rate", "tool:search", "1/h", "--reason", "quota until Monday").code == 0
    drill.scene.start("a", of=search)
    waiting = drill.scene.submit("b", of=search)
    drill.scene.claim(drill.scene.pop() or "")
    (row,) = drill("calls", "--state", "queued", "--tool", "search", "--json").json["calls"]
    assert (row["call"], row["limited_by"]) == (waiting, "rate:tool:search")
    drill("rate", "tool:search", "--clear")
    drill.scene.tick()

    assert drill.scene.take().call == waiting


def test_a_queue_that_nobody_serves_is_found_and_served(drill: Drill, tmp_path: Path) -> None:
    billing = spec("pay", queue="billing")
    drill.scene.publish(billing)
    drill.submit(tmp_path, {"name": "pay"})

    assert {"no_worker", "unserved_queue"} <= drill.findings()
    (row,) = drill("calls", "--state", "queued", "--oldest", "--json").json["calls"]
    assert row["queue"] == "billing"
    planned = drill("cancel", "--tool", "pay", "--state", "queued", "--dry-run", "--json").json["plan"]
    assert [plan["plan"] for plan in planned] == ["would never run"]

    drill.scene.settle(drill.scene.take("billing"))
    assert "unserved_queue" not in drill.findings()


def test_a_full_server_refuses_new_calls_settles_old_ones_and_is_freed_by_a_purge(drill: Drill, tmp_path: Path) -> None:
    scene = drill.scene
    scene.publish(spec("pay"))
    for number in range(20):
        scene.succeeded(f"old-{number}", "x" * 100_000)
    running = scene.start("running")
    used = drill.store.redis.info("memory")["used_memory"]
    drill.store.redis.config_set("maxmemory", used)

    refused = drill.submit(tmp_path, {"name": "pay"})
    assert (refused.code, "memory limit" in refused.err) == (1, True)
    assert scene.settle(running, "y").verdict == "settled"
    assert "little_memory" in drill.findings()

    purged = drill("purge", "--state", "succeeded", "--yes")
    assert purged.code == 0
    freed = re.search(r"Redis uses .* MB of .* MB, (.*) MB less than before", purged.err)
    assert freed
    assert float(freed[1]) > 1.5
    assert drill.submit(tmp_path, {"name": "pay"}).code == 0


def test_a_restored_backup_holds_mutating_calls_until_someone_has_compared(drill: Drill, tmp_path: Path) -> None:
    scene, server = drill.scene, drill.server
    scene.succeeded("before")
    server.kill9()
    shutil.copytree(server.folder / "appendonlydir", tmp_path / "backup")
    server.start()
    scene.succeeded("forgotten soon")
    highest = scene.stats().fence
    server.kill9()
    shutil.rmtree(server.folder / "appendonlydir")
    shutil.copytree(tmp_path / "backup", server.folder / "appendonlydir")
    server.start()

    key = scene.submit("after")
    scene.claim(scene.pop() or "", seen=highest)  # by a worker that has lived through it

    assert "went_back" in drill.findings()
    assert drill("doctor").code == 4
    assert drill("call", key, "--json").json["reason"] == "store_went_back"
    assert drill("recover", "--accept-loss", "--reason", "compared", "--yes").code == 0
    assert "went_back" not in drill.findings()
    scene.settle(scene.take())
    assert scene.state(key) == "succeeded"


def test_a_worker_that_cannot_start_says_why_in_its_last_line(
    drill: Drill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_app.py").write_text("import no_such_library\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    drill.scene.publish(spec("pay"))

    said = drill("work", "--tools", "broken_app:tools")

    assert said.code == 2
    assert "no_such_library" in said.err
    assert "no_worker" in drill.findings()


def test_two_calls_with_the_same_content_can_be_told_apart(drill: Drill) -> None:
    first = drill.scene.succeeded("a", arguments={"cents": 5}, scope="tenant-7/1", turn_id="turn-1")
    second = drill.scene.succeeded("a", arguments={"cents": 5}, scope="tenant-7/1", turn_id="turn-2")

    rows = drill("calls", "--tool", "pay", "--scope", "tenant-7/*", "--since", "1d", "--json").json["calls"]
    assert {row["call"]: row["turn"] for row in rows} == {first: "turn-1", second: "turn-2"}
    shown = [drill("call", key, "--json").json for key in (first, second)]
    assert shown[0]["arguments"] == shown[1]["arguments"]
    assert shown[0]["idempotency_key"] != shown[1]["idempotency_key"]
    assert [len([e for e in one["history"] if e["op"] == "claim"]) for one in shown] == [1, 1]


def test_a_rotated_key_recognises_old_calls_and_a_dropped_one_is_said(
    drill: Drill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLONCE_KEYS", OLD)
    drill.scene.publish(spec("pay", secret=("card",)))
    call = {"name": "pay", "arguments": {"card": "4111", "cents": 5}}
    drill.submit(tmp_path, call)
    drill.scene.settle(drill.scene.take())

    monkeypatch.setenv("TOOLONCE_KEYS", f"{NEW},{OLD}")
    rotated = drill("replay", "--since", "7d")
    again = drill.submit(tmp_path, call)
    monkeypatch.setenv("TOOLONCE_KEYS", NEW)
    dropped = drill("replay", "--since", "7d")

    assert (rotated.code, again.code) == (0, 0)
    assert "replayed" in again.out
    assert dropped.code == 2
    assert "TOOLONCE_KEYS" in dropped.err


def test_a_store_moves_to_another_server_with_every_answer(toolonce: CommandLine) -> None:
    port = free_port()
    with RealServer(port=str(port), bind="127.0.0.1", repl_diskless_sync_delay="0") as old, RealServer() as new:
        before = Drill(old, toolonce)
        done, waiting = before.scene.succeeded("a", 7), before.scene.submit("b")
        with new.client() as client:
            client.execute_command("REPLICAOF", "127.0.0.1", str(port))
            wait_until(lambda: client.info("replication")["master_link_status"] == "up", 20, "the copy is complete")
            client.execute_command("REPLICAOF", "NO", "ONE")
        before.store.close()
        old.kill9()

        after = Drill(new, toolonce)
        assert after("replay", done).code == 0
        assert after("call", done, "--json").json["result"] == 7
        after.scene.settle(after.scene.take())
        assert after.scene.state(waiting) == "succeeded"
        assert after("stats", "--json").json["balanced"]
        after.store.close()
