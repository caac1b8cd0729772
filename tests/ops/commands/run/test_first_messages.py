"""Each message that can end a first hour names the cause and the next command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.processes.command_line import CommandLine
from tests.support.servers.redis_server import RealServer
from tests.support.store.live_store import LiveScene
from tests.support.store.scene import spec
from toolonce.store.connections.connection import Connection
from toolonce.store.model.errors import StoreError, StoreMisuse
from toolonce.stream import Client, TurnDecoder, TurnTruncated

TRANSCRIPTS = Path(__file__).resolve().parents[4] / "ops" / "demo" / "transcripts"
INVOICE = TRANSCRIPTS / "invoice.openai-responses.sse"


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_no_redis(toolonce: CommandLine) -> None:
    way_out = "without any of them, `toolonce up` runs one for this project"
    said = toolonce("stats", place=["--redis", "redis://localhost:1/0"])
    assert said.code == 3
    assert "connecting to localhost:1" in said.err
    assert way_out in said.err
    connection = Connection("redis://localhost:1/0")
    with Client(connection, scope="s") as client, pytest.raises(StoreError, match=way_out):
        client.tools("anthropic")
    connection.close()


def test_no_tools_and_the_wrong_namespace(toolonce: CommandLine, redis_server: RealServer, namespace: str) -> None:
    """A namespace that was misspelt is one in which no worker has published a tool."""
    place = f"namespace {namespace} at {redis_server.url}"
    way_out = "start one there: toolonce work --tools MODULE:REGISTRY; if one runs, it uses another server or namespace"
    submitted = toolonce("submit", "--scope", "s", str(INVOICE))

    assert submitted.code == 2
    assert f"{place}; {way_out}: compare `toolonce url --json` in both terminals" in submitted.err
    with (
        Client(redis_server.url, namespace=namespace, scope="s") as client,
        pytest.raises(StoreMisuse, match=way_out),
    ):
        client.tools("anthropic")
    doctor = toolonce("doctor")
    assert place in doctor.err
    assert "no worker has published a tool in this namespace [no_tools]" in doctor.out
    assert "compare `toolonce url --json` in both terminals" in one_line(doctor.out)


def test_no_worker(scene: LiveScene, toolonce: CommandLine, namespace: str) -> None:
    scene.publish(spec("create_invoice"))
    way_out = "so calls wait; start one in another terminal: toolonce work --tools MODULE:REGISTRY"

    submitted = toolonce("submit", "--scope", "s", "--wait", "1ms", str(INVOICE))
    (call,) = toolonce("calls", "--json").json["calls"]

    assert f"no worker runs in namespace {namespace} at" in submitted.err
    for words in (("wait", call["call"]), ("wait", "--scope", "s", "resp_demo_invoice")):
        assert way_out in toolonce(*words, "--timeout", "1ms").err
    assert way_out in submitted.err
    assert "toolonce wait --scope s resp_demo_invoice" in submitted.err
    assert way_out not in toolonce("submit", "--scope", "s", "--wait", "0", str(INVOICE)).err
    assert "no worker lives [no_worker]" in toolonce("doctor").out


def test_the_wrong_dialect(toolonce: CommandLine) -> None:
    hint = "read as anthropic, but it looks like openai-responses; give that in its place"
    decoder = TurnDecoder("anthropic")
    decoder.feed(INVOICE.read_bytes())

    with pytest.raises(TurnTruncated, match=hint):
        decoder.eof().require_calls()
    assert hint in toolonce("submit", "--scope", "s", "--dialect", "anthropic", str(INVOICE)).err
    assert hint in one_line(toolonce("decode", "--dialect", "anthropic", str(INVOICE), place=[]).out)


@pytest.mark.parametrize(
    ("place", "way_out"),
    [
        ("first_tools", "write it as package.module:registry, for example app.tools:tools"),
        ("first_tools.py:tools", "a module is named without path and .py: first_tools"),
        ("./first_tools.py:tools", "a module is named without path and .py: first_tools"),
        ("not_there:tools", "go to the folder of your tools, or write first ones: toolonce init"),
        ("first_tools:registry", "not a Registry; there is one under 'tools'"),
        ("first_tools:Registry", "not a Registry; there is one under 'tools'"),
        ("first_tools:empty", "this registry holds no tools; decorate one with @empty.tool"),
    ],
)
def test_no_tools_to_run(
    tmp_path: Path, toolonce: CommandLine, monkeypatch: pytest.MonkeyPatch, place: str, way_out: str
) -> None:
    (tmp_path / "first_tools.py").write_text(
        "from toolonce.worker import Registry\ntools = Registry()\n@tools.tool\ndef pay() -> int:\n    return 1\n"
        "empty = Registry()\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))

    for command in ("up", "work"):
        said = toolonce(command, "--tools", place)
        assert said.code == 2
        assert way_out in said.err


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"url": 7, "scope": "s"}, "the URL is a text or an open Connection, not int"),
        ({"scope": None}, "the scope is a text, not NoneType"),
        ({"scope": "s", "tenant": 7}, "the tenant is a text, not int"),
        ({"scope": "s", "namespace": 7}, "the namespace is a text, not int"),
    ],
)
def test_the_wrong_object_for_a_client(redis_server: RealServer, given: dict[str, Any], message: str) -> None:
    with pytest.raises(StoreMisuse, match=message):
        Client(**{"url": redis_server.url, **given})
