"""The roles of ops/deploy/users.acl on a real server: each can do its work, and nothing of the others'."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from redis.exceptions import NoPermissionError

from tests.support.processes.command_line import CommandLine
from tests.support.processes.processes import Child
from tests.support.servers.redis_server import RealServer
from tests.support.wait import wait_until
from toolonce.store.connections.async_connection import AsyncConnection
from toolonce.store.connections.connection import Patience
from toolonce.store.model.errors import StoreUnavailable
from toolonce.store.operations.operation import load

OPS = Path(__file__).parents[3] / "ops"
TRANSCRIPT = OPS / "demo" / "transcripts" / "weather.anthropic.sse"
APP = """
from toolonce.worker.tools.registry import Registry
tools = Registry()

@tools.tool(effect="read")
def get_weather(city: str) -> str:
    return city

@tools.tool(timeout=5)
def save_note(title: str, text: str) -> None: ...
"""


class Guarded(RealServer):
    """A server that loaded the file; its passwords are the file's own."""

    def client(self) -> redis.Redis:
        return redis.Redis.from_url(self.url_of("operator"), decode_responses=True)

    def url_of(self, user: str) -> str:
        return f"unix://{user}:change-me-{user.partition('-')[0]}@{self.socket}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    acl = tmp_path_factory.mktemp("acl") / "users.acl"
    acl.write_text((OPS / "deploy" / "users.acl").read_text() + "user admin on >change-me-admin ~* &* +@all\n")
    with Guarded(aclfile=str(acl)) as running:
        yield running


def connect(server: Guarded, user: str) -> redis.Redis:
    return redis.Redis.from_url(server.url_of(user), decode_responses=True)


def test_nobody_gets_in_without_a_name(server: Guarded) -> None:
    with redis.Redis.from_url(server.url) as nobody, pytest.raises(redis.AuthenticationError):
        nobody.ping()


@pytest.mark.parametrize("login", ["", "operator:wrong@", "nobody:wrong@"])
def test_a_refused_login_is_called_so_and_not_a_silent_server(
    server: Guarded, toolonce: CommandLine, login: str
) -> None:
    url = f"unix://{login}{server.socket}"
    said = toolonce("stats", place=["--redis", url])

    assert said.code == 3
    assert said.err.startswith("toolonce: Redis refuses the login (")
    assert "user and password in the URL" in said.err
    assert "no answer" not in said.err


def test_an_async_harness_hears_of_a_refused_login_too(server: Guarded) -> None:
    async def ask() -> None:
        connection = AsyncConnection(f"unix://nobody:wrong@{server.socket}", patience=Patience(1, 0))
        try:
            await connection.command("PING")
        finally:
            await connection.close()

    with pytest.raises(StoreUnavailable, match="refuses the login"):
        asyncio.run(ask())


def test_a_user_without_the_rights_is_told_which_role_gives_them(server: Guarded, toolonce: CommandLine) -> None:
    said = toolonce("stats", place=["--redis", server.url_of("inbox-acme")])

    assert said.code == 3
    assert said.err.startswith("toolonce: Redis refuses: ")
    assert "ops/deploy/users.acl" in said.err


@pytest.mark.parametrize("user", ["inbox-acme", "worker", "operator"])
@pytest.mark.parametrize(
    "command",
    ["FLUSHALL", "KEYS *", "CONFIG SET appendonly no", "SHUTDOWN", "ACL LIST", "GET other:key", "SET other:key 1",
     "SCRIPT FLUSH", "REPLICAOF NO ONE", "SAVE", "FUNCTION FLUSH", "MODULE LIST"],
)  # fmt: skip
def test_no_role_can_do_what_none_needs(server: Guarded, user: str, command: str) -> None:
    with connect(server, user) as client, pytest.raises(NoPermissionError):
        client.execute_command(*command.split())


@pytest.mark.parametrize(
    "command",
    ["XADD {toolonce}:inbox:umbrella * turn 1", "XREAD STREAMS {toolonce}:answers:umbrella:1-1 0",
     "XREAD STREAMS {toolonce}:events 0", "HGETALL {toolonce}:call:x", "SADD {toolonce}:tools x", "EVAL return(1) 0",
     "XADD {toolonce}:answers:acme:1-1 * a b", "LPUSH {toolonce}:rq:queue:toolonce.default x",
     "SMEMBERS {toolonce}:inboxes"],
)  # fmt: skip
def test_an_inbox_harness_reaches_its_own_inbox_and_answers_and_nothing_else(server: Guarded, command: str) -> None:
    with connect(server, "inbox-acme") as client, pytest.raises(NoPermissionError):
        client.execute_command(*command.split())


def test_each_role_can_do_all_of_its_work(server: Guarded, toolonce: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    work = ("work", "--tools", "app:tools", "--redis", server.url_of("worker"))
    consume = ("consume", "--redis", server.url_of("worker"))
    connect(server, "admin").acl_log_reset()
    with (
        Child.python("-m", "toolonce.ops", *work, cwd=tmp_path) as worker,
        Child.python("-m", "toolonce.ops", *consume, cwd=tmp_path) as consumer,
    ):
        worker.wait_for_line("serves default")
        place = ["--redis", server.url_of("operator")]
        answer = _through_the_inbox(server)
        said = toolonce("submit", "--scope", "s", str(TRANSCRIPT), place=place)
        checks = {name: toolonce(*words, place=place) for name, words in _operators_work().items()}

        assert (worker.terminate(), consumer.terminate()) == (0, 0)
        assert "NOPERM" not in worker.output + consumer.output
    assert answer == "succeeded"
    assert said.code == 0, said.err
    assert {name: check.err for name, check in checks.items() if check.code} == {}
    denied = [(entry["username"], entry["object"]) for entry in connect(server, "admin").acl_log()]
    assert [each for each in denied if each[0] in ("worker", "operator")] == []


OF_WORKERS = {"deliver", "take", "claim", "renew", "declare", "begin", "progress", "settle", "interrupt", "release"}
"""Scripts that operators do not run: those of a worker's runs and of consumers."""


@pytest.mark.parametrize("user", ["worker", "operator"])
@pytest.mark.parametrize("script", sorted(path.stem for path in (OPS.parent / "store" / "lua").glob("[!_]*.lua")))
def test_a_role_may_use_every_command_of_the_scripts_that_it_runs(user: str, script: str) -> None:
    """Also those that a script uses in rare cases only: a settle that is refused there loses a result."""
    if user == "operator" and script in OF_WORKERS:
        return
    [line] = re.findall(rf"^user {user} .*$", (OPS / "deploy" / "users.acl").read_text(), re.MULTILINE)
    allowed = {word[1:].partition("|")[0] for word in line.split() if word.startswith("+")}
    used = {command.lower() for command in re.findall(r"redis\.p?call\('(\w+)'", load(script).text)}

    assert used - allowed == set()


def _operators_work() -> dict[str, list[str]]:
    return {
        "calls": ["calls"], "stats": ["stats"], "workers": ["workers"], "doctor": ["doctor"], "recover": ["recover"],
        "tail": ["tail", "--for", "0s"], "replay": ["replay", "--since", "1h"], "aborted": ["aborted"],
        "metrics": ["metrics", "--once"], "tools": ["tools", "list"], "limit": ["limit", "tool:pay", "5"],
        "rate": ["rate", "tool:pay", "100/min"], "pause": ["pause", "tool:pay"], "resume": ["resume", "tool:pay"],
        "accept": ["recover", "--accept-loss", "--reason", "r", "--yes"],
        "purge": ["purge", "--state", "succeeded", "--yes"],
    }  # fmt: skip


def _through_the_inbox(server: Guarded) -> str:
    calls = json.dumps([{"name": "get_weather", "arguments": {"city": "Oslo"}}])
    with connect(server, "inbox-acme") as client:
        client.sadd("{toolonce}:inboxes", "acme")
        entry = client.xadd("{toolonce}:inbox:acme", {"scope": "s", "turn": "1", "calls": calls})
        answers = f"{{toolonce}}:answers:acme:{entry}"
        told: list[dict[str, str]] = []

        def answered() -> bool:  # first that it was admitted, then how its call ended
            told[:] = [fields for _, entries in client.xread({answers: "0"}) for _, fields in entries]
            return len(told) == 2

        wait_until(answered, 20, "the answer to the inbox entry")
    return str(told[1]["state"])
