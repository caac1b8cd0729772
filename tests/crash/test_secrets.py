"""G8: what is declared secret is nowhere in clear. One marker goes through everything, and then is looked for."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.crash.process_starter import ProcessStarter
from tests.support.crash.secrets import MARKER, tools
from tests.support.processes.processes import Child
from tests.support.servers.everything import everything_stored, files_of
from tests.support.servers.redis_server import RealServer
from tests.support.stream.inbox import seal_entry
from tests.support.wait import wait_until
from toolonce.store.connections.connection import Connection
from toolonce.store.model.keyring import VARIABLE, Keyring
from toolonce.store.model.outcomes import Outcome
from toolonce.store.model.states import State
from toolonce.store.operations import queries
from toolonce.store.operations.tools import publish
from toolonce.stream.harness.client import Client
from toolonce.stream.turns.turn import RejectedCall, ToolCall
from toolonce.worker import Registry
from toolonce.worker.tools.errors import BadTool

KEYS = "the newest key of the tests"
NAMESPACE = "secrets"
END = "the end of the test"
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("sign_in", {"api_key": MARKER, "note": "mine"}),
    ("refuse", {"api_key": MARKER}),
    ("break_down", {"api_key": MARKER}),
    ("break_down_apart", {"api_key": MARKER}),
    ("deep", {"auth": {"password": MARKER}}),
    ("deep", {"auth": {"password": MARKER * 3}}),  # too long: refused with the schema's words
    ("sign_in", {"api_key": [MARKER], "note": "a list"}),  # of the wrong type
    ("unclear", {"api_key": MARKER}),
]


@pytest.fixture
def keyring(monkeypatch: pytest.MonkeyPatch) -> Keyring:
    monkeypatch.setenv(VARIABLE, KEYS)
    return Keyring.parse(KEYS)


@contextmanager
def _overhearing(server: RealServer, heard: list[str]) -> Iterator[None]:
    """Every command that the server is sent, whole."""
    line = socket.socket(socket.AF_UNIX)
    line.connect(str(server.socket))
    line.sendall(b"MONITOR\r\n")

    def listen() -> None:
        while not heard or END not in heard[-1]:
            heard.append(line.recv(1 << 20).decode(errors="replace"))

    thread = threading.Thread(target=listen)
    thread.start()
    try:
        yield
    finally:
        with server.client() as client:
            client.echo(END)
        thread.join(timeout=20)
        line.close()


def _submit(client: Client, keyring: Keyring) -> tuple[Outcome, ...]:
    asked: list[ToolCall | RejectedCall] = [
        ToolCall(name, arguments, f"call_{n}", "function", n) for n, (name, arguments) in enumerate(CALLS)
    ]
    asked.append(RejectedCall("sign_in", "call_r", "invalid JSON", len(asked), raw=f'{{"api_key": "{MARKER}'))
    return client.submit_calls(asked, turn_id="turn-1").outcomes


def _seal_into_inbox(connection: Connection, keyring: Keyring) -> None:
    calls = json.dumps([{"name": "sign_in", "arguments": {"api_key": MARKER, "note": "by inbox"}, "id": "i1"}])
    space = connection.space
    connection.command("SADD", space.inboxes, "tenant-1")
    entry = {"scope": "talk-2", "turn": "turn-2", "calls": seal_entry(calls, keyring, "tenant-1"), "sealed": "1"}
    connection.command("XADD", space.inbox("tenant-1"), "*", *(word for pair in entry.items() for word in pair))


def _command_lines(starter: ProcessStarter, server: RealServer, keys: list[str]) -> Iterator[str]:
    """What people are shown, in words and in JSON."""
    for words in (
        *(("call", key) for key in keys), *(("call", key, "--json") for key in keys), ("stats",), ("workers",),
        ("calls", "--state", "succeeded", "--json"), ("calls", "--state", "failed"), ("calls", "--state", "refused"),
        ("replay", keys[0]), ("doctor",), ("tools", "check", "--tools", "tests.support.crash.secrets:tools"),
    ):  # fmt: skip
        with starter.start("toolonce", *words, *_place(server), env={VARIABLE: KEYS}) as command:
            command.wait_until_gone()
            yield command.output


def _place(server: RealServer) -> tuple[str, ...]:
    return ("--redis", server.url, "--namespace", NAMESPACE)


@pytest.mark.timeout(240)
def test_a_secret_is_nowhere_in_clear(own_server: RealServer, keyring: Keyring, starter: ProcessStarter) -> None:
    """O3-11: in Redis keys, in its append-only file, in what it is sent, in logs, answers and what people are shown."""
    connection = Connection(own_server.url, namespace=NAMESPACE)
    client = Client(own_server.url, scope="tenant-1/talk-1", namespace=NAMESPACE)
    connection.run(publish(connection.space, tools.specs()))
    heard: list[str] = []
    serve = ("--tools", "tests.support.crash.secrets:tools", "--lease", "1s", "--log-level", "debug")
    with (
        _overhearing(own_server, heard),
        Child.python("-m", "toolonce.ops", "work", *serve, *_place(own_server)) as worker,
        Child.python("-m", "toolonce.ops", "consume", *_place(own_server)) as consumer,
    ):
        outcomes = _submit(client, keyring)
        _seal_into_inbox(connection, keyring)
        batch = client.batch("turn-1")

        def answered() -> bool:
            states = {outcome.state for outcome in batch.refresh()}
            known = connection.run(queries.stats(connection.space)).counts.get("admitted") == len(outcomes) + 1
            return known and not states & {State.QUEUED, State.RUNNING}

        wait_until(answered, 60, "all calls are at rest")
        wait_until(lambda: batch.refresh()[7].state is State.FAILED, 30, "the unclear one is reconciled")
        again = _submit(client, keyring)
        keys = [outcome.key for outcome in again]
        shown = list(_command_lines(starter, own_server, keys[:5]))
        worker.terminate()
        consumer.terminate()

    states = [outcome.state for outcome in again]
    assert states[:8] == [
        State.SUCCEEDED, State.FAILED, State.UNKNOWN, State.UNKNOWN, State.SUCCEEDED, State.REFUSED, State.REFUSED,
        State.FAILED,
    ]  # fmt: skip
    places = {
        "stored": "\n".join(everything_stored(own_server)),
        "files": b"\n".join(files_of(own_server.folder)).decode(errors="replace"),
        "sent": "\n".join(heard),
        "logs": worker.output + consumer.output,
        "shown": "\n".join(shown),
        "answers": repr([outcome.failure for outcome in again]) + repr(client.batch("turn-1").replies("anthropic")),
        "values": repr([outcome.value for outcome in again]),
    }
    assert all(places.values())
    assert all(shown)
    assert "***" in places["shown"]
    assert [place for place, text in places.items() if MARKER in text] == []
    client.close()
    connection.close()


def test_a_worker_with_secrets_and_no_keys_does_not_start(own_server: RealServer) -> None:
    serve = ("--tools", "tests.support.crash.secrets:tools")
    with Child.python("-m", "toolonce.ops", "work", *serve, *_place(own_server), env={VARIABLE: ""}) as worker:
        code = worker.wait()

    assert code != 0
    assert VARIABLE in worker.output


def test_a_secret_names_no_lane() -> None:
    """A lane is a digest that anyone can compute: a short secret could be guessed from it."""
    with pytest.raises(BadTool, match="secret"):

        @Registry().tool(secret="pin", order_by="pin")
        def pay(pin: str) -> None: ...
