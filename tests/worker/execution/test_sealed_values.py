"""A sealed value is opened for its tenant and in its place only; anywhere else it is the text that it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes.command_line import CommandLine
from tests.support.processes.workers import Site
from tests.support.servers.everything import everything_stored
from tests.support.servers.redis_server import RealServer
from toolonce.store.model.keyring import VARIABLE, Keyring
from toolonce.store.model.outcomes import Outcome
from toolonce.store.model.sealing import Sealer
from toolonce.store.model.states import State
from toolonce.store.operations.queries import Record
from toolonce.stream.harness.client import Client
from toolonce.stream.turns.turn import ToolCall
from toolonce.worker import Registry
from toolonce.worker.tools.errors import BadTool

KEYS = "k" * 32
CLEAR = "top-secret-of-bob"
REST = (State.SUCCEEDED, State.FAILED, State.REFUSED, State.UNKNOWN)


@pytest.fixture
def site(own_server: RealServer, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv(VARIABLE, KEYS)
    opened = Site(own_server.url, namespace, tmp_path)
    yield opened
    opened.close()


def note(site: Site, line: str) -> None:
    with site.ledger.path.open("a") as ledger:
        ledger.write(f"{line}\n")


def served(site: Site) -> Registry:
    """What was entered with which values is noted outside of Redis."""
    tools = Registry()

    @tools.tool(secret_result={"token": {"opens_in": ["fetch.token", "fetch_deep.auth.token"]}, "other": {}})
    def login(user: str) -> dict[str, str]:
        return {"token": CLEAR, "other": CLEAR}

    @tools.tool(secret="token")
    def fetch(token: str) -> str:
        note(site, f"fetch {token}")
        return "fetched"

    @tools.tool(secret="auth.token")
    def fetch_deep(auth: dict[str, Any]) -> str:
        note(site, f"fetch_deep {json.dumps(auth['token'])}")
        return "fetched"

    @tools.tool(secret="key")
    def send(body: Any, key: Any) -> str:
        note(site, f"send {json.dumps([body, key], sort_keys=True)}")
        return "sent"

    return tools


def code_of(found: Outcome | Record) -> str:
    return found.failure.code if found.failure else ""


def told(site: Site, tool: str, *, tenant: str = "tenant-1", **arguments: Any) -> Outcome:
    """One call of this tenant's, to its rest."""
    with Client(site.url, scope=f"{tenant}/talk", namespace=site.namespace) as client:
        call = ToolCall(tool, arguments, "c", "function", 0)
        turn = sha256(json.dumps([tool, arguments]).encode()).hexdigest()
        batch = client.submit_calls([call], turn_id=turn)
        site.wait_for(batch.outcomes[0].key, *REST)
        return batch.refresh()[0]


def test_a_sealed_result_is_opened_only_in_the_fields_that_its_tool_lists(site: Site) -> None:
    """faults 4"""
    with site.worker_here(served(site)):
        value = told(site, "login", user="bob").value
        token, other = value["token"], value["other"]
        assert set(token) == {"$sealed"}

        assert told(site, "fetch", token=token).state is State.SUCCEEDED
        assert told(site, "fetch_deep", auth={"token": token}).state is State.SUCCEEDED
        refused = told(site, "fetch", token=other)
        sent = told(site, "send", body=value, key=token)

    assert refused.state is State.REFUSED
    assert code_of(refused) == "invalid_arguments"
    assert sent.state is State.SUCCEEDED
    assert site.ledger.lines() == [
        f"fetch {CLEAR}",
        f'fetch_deep "{CLEAR}"',
        "send " + json.dumps([value, token], sort_keys=True),
    ]


def test_a_token_of_another_tenant_stays_the_text_it_is(site: Site) -> None:
    """faults 4: a model may have been shown it, by whatever way."""
    with site.worker_here(served(site)):
        value = told(site, "login", tenant="victim", user="bob").value
        outcome = told(site, "fetch", tenant="mallory", token=value["token"])
        told(site, "send", tenant="mallory", body=value, key=value["token"])

    assert outcome.state is State.REFUSED
    assert CLEAR not in "\n".join(site.ledger.lines())
    assert len(site.ledger.lines("send")) == 1


@pytest.mark.parametrize("place", ["body", "key"])
def test_a_token_that_a_model_made_up_is_no_reason_to_take_a_call_twice(site: Site, place: str) -> None:
    """faults 4: `{"$sealed": "x"}` was claimed and given back for as long as the deadline allowed."""
    made_up = {"$sealed": "x"}
    with site.worker_here(served(site)):
        given: dict[str, Any] = {"body": "b", "key": "k", place: made_up}
        outcome = told(site, "send", **given)

    assert outcome.state is State.SUCCEEDED
    record = site.record(outcome.key)
    assert [event["op"] for event in record.history] == ["admit", "claim", "settle"]
    [line] = site.ledger.lines("send")
    assert made_up in json.loads(line.removeprefix("send "))


@pytest.mark.parametrize("sealed_for", ["nobody", "another field", "another tool", "another tenant"])
def test_arguments_that_were_moved_in_the_store_are_refused_once(site: Site, sealed_for: str) -> None:
    """faults 4: the worker has the last word, and it is one word."""
    keyring = Keyring.parse(KEYS)
    sealer = Sealer(keyring, "tenant-2" if sealed_for == "another tenant" else "tenant-1", "fetch")
    names = {"another tool": "login"}
    forged = Sealer(keyring, sealer.tenant, names.get(sealed_for, "fetch")).seal_arguments({"token": CLEAR}, ["token"])
    if sealed_for == "another field":
        forged = {"token": sealer.seal_arguments({"auth": CLEAR}, ["auth"])["auth"]}
    elif sealed_for == "nobody":
        forged = {"token": {"$sealed": "x"}}
    tools = served(site)
    site.publish(tools)
    key = site.submit("fetch", token="mine")
    site.connection.command("HSET", f"{{{site.namespace}}}:call:{key}", "args", json.dumps(forged))

    with site.worker_here(tools):
        record = site.wait_for(key, *REST)

    assert record.state is State.REFUSED
    assert code_of(record) == "unreadable_arguments"
    assert [event["op"] for event in record.history] == ["admit", "claim", "settle"]
    assert site.ledger.lines() == []


def test_a_call_that_was_given_a_token_is_replayed_and_no_conflict(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    """faults 4: it is identified by the arguments as they came."""
    toolonce = CommandLine(capsys, ("--redis", site.url, "--namespace", site.namespace))
    with site.worker_here(served(site)):
        token = told(site, "login", user="bob").value["token"]
        first = told(site, "fetch", token=token)
        again = told(site, "fetch", token=token)

    assert (again.key, again.conflict, again.state) == (first.key, False, State.SUCCEEDED)
    assert toolonce("replay", first.key, "--json").json["answers"][0]["answer"] == "replay"
    assert site.ledger.count("fetch") == 1


def test_a_result_that_is_cut_or_no_json_shows_nothing_of_its_secret_fields(site: Site, own_server: RealServer) -> None:
    """faults 1: a cut result is stored as text, in which no field can be sealed any more."""
    tools = Registry()

    @tools.tool(secret_result="token", result_limit=500)
    def large() -> dict[str, Any]:
        return {"token": CLEAR, "rest": "x" * 2_000}

    @tools.tool(secret_result="token")
    def odd() -> Any:
        return type("Session", (), {"__repr__": lambda _self: f"<Session {CLEAR}>"})()

    @tools.tool(secret_result="token")
    def disguised() -> Any:
        return {"token": {"$sealed": CLEAR}}

    @tools.tool(secret="key", result_limit=500)
    def near_the_cut(key: str) -> str:
        return "x" * 485 + key

    with site.worker_here(tools):
        outcomes = [told(site, name) for name in ("large", "odd", "disguised")]
        cut = told(site, "near_the_cut", key=CLEAR)

    assert [one.state for one in (*outcomes, cut)] == [State.SUCCEEDED] * 4
    assert outcomes[0].marks["truncated"]
    assert outcomes[1].value == "***"
    assert "x***" in cut.value
    stored = "\n".join(everything_stored(own_server))
    assert CLEAR not in stored
    assert f"x{CLEAR[:4]}" not in stored


@pytest.mark.parametrize(
    "declared", [{"token": ["fetch.token"]}, {"token": {"opens": []}}, {"token": {"opens_in": ["x"]}}]
)
def test_where_a_sealed_result_opens_is_declared_well_or_not_at_all(declared: Any) -> None:
    with pytest.raises(BadTool, match=r"secret_result|opens_in"):

        @Registry().tool(secret_result=declared)
        def login() -> None: ...


def test_arguments_that_do_not_fit_leave_no_secret_in_clear(site: Site, own_server: RealServer) -> None:
    """faults 1: in a text in place of an object, and under another name"""
    marks = ("MARK-as-a-text", "MARK-under-another-name")
    tools = Registry()

    @tools.tool(secret="auth.token", schema={"type": "object", "properties": {"auth": {"type": "object"}}})
    def fetch(auth: dict[str, Any]) -> str:
        return "fetched"

    with site.worker_here(tools):
        outcomes = (
            told(site, "fetch", auth=json.dumps({"token": marks[0]})),
            told(site, "fetch", auth="none", Token=marks[1]),
        )

    assert [outcome.state for outcome in outcomes] == [State.REFUSED, State.REFUSED]
    assert not [mark for mark in marks if mark in "\n".join(everything_stored(own_server))]


@pytest.mark.parametrize("as_text", [False, True])
def test_what_a_result_declares_secret_is_in_clear_nowhere_in_it(
    site: Site, own_server: RealServer, *, as_text: bool
) -> None:
    """faults 1"""
    tools = Registry()

    @tools.tool(secret_result="token")
    def login(user: str) -> Any:
        result = {"token": CLEAR, "example": f"curl -H 'Authorization: Bearer {CLEAR}'"}
        return json.dumps(result) if as_text else result

    with site.worker_here(tools):
        outcome = told(site, "login", user="bob")

    assert outcome.state is State.SUCCEEDED
    assert CLEAR not in repr(outcome)
    assert not [text for text in everything_stored(own_server) if CLEAR in text]
