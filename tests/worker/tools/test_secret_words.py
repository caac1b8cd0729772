"""Secrets in words of the tool's author that are no handler's: a hook, a validator, a reconcile."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator

from tests.support.processes.workers import Site
from tests.support.servers.redis_server import RealServer
from toolonce.store.model.keyring import VARIABLE
from toolonce.store.model.states import State
from toolonce.worker import Call, Deny, Registry

SECRET = "sk-words-51c9aa70"


@pytest.fixture
def own_site(own_server: RealServer, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv(VARIABLE, "k" * 32)
    opened = Site(own_server.url, namespace, tmp_path)
    yield opened
    opened.close()


def everything(server: RealServer) -> bytes:
    return b"".join(path.read_bytes() for path in (server.folder / "appendonlydir").iterdir())


def never_fits(value: str) -> str:
    raise ValueError(f"no such key: {value}")


@pytest.mark.parametrize("hook", ["denies", "fails", "none"])
def test_a_hook_and_a_validator_tell_no_secret(
    own_server: RealServer, own_site: Site, caplog: pytest.LogCaptureFixture, hook: str
) -> None:
    """G8: both see the arguments in clear, and say them in a reason, an exception, a message."""
    caplog.set_level(logging.DEBUG)
    tools = Registry()
    field: Any = Annotated[str, AfterValidator(never_fits)] if hook == "none" else str

    def sign_in(api_key: str) -> str:
        return "in"

    sign_in.__annotations__["api_key"] = field
    tools.tool(secret="api_key")(sign_in)
    if hook != "none":

        @tools.authorize
        def judge(call: Call, arguments: dict[str, Any]) -> Deny:
            if hook == "fails":
                raise RuntimeError(f"bad {arguments['api_key']}")
            return Deny(f"{arguments['api_key']} is barred")

    with own_site.worker_here(tools):
        record = own_site.wait_for(own_site.submit("sign_in", api_key=SECRET), State.REFUSED)

    assert SECRET not in str(record.fields)
    assert SECRET not in caplog.text
    assert SECRET.encode() not in everything(own_server)


def test_a_reconcile_that_repeats_a_secret_stores_none(own_server: RealServer, own_site: Site) -> None:
    tools = Registry()

    @tools.tool(secret="api_key")
    def book(api_key: str) -> str:
        raise ConnectionResetError("no answer")

    @book.reconcile
    def find(api_key: str) -> dict[str, str]:
        return {"booked_with": api_key}

    with own_site.worker_here(tools):
        record = own_site.wait_for(own_site.submit("book", api_key=SECRET), State.SUCCEEDED)

    assert record.fields.result == '{"booked_with":"***"}'
    assert SECRET.encode() not in everything(own_server)


def spells_it_oddly(value: str) -> str:
    raise ValueError(f"no such key: {'-'.join(value)}")


def test_what_a_validator_of_a_tool_with_secrets_raises_is_not_told(
    own_server: RealServer, own_site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    """faults 1: it is an exception like any other."""
    caplog.set_level(logging.DEBUG)
    tools = Registry()

    def sign_in(api_key: str, note: int = 0) -> str:
        return "in"

    sign_in.__annotations__["api_key"] = Annotated[str, AfterValidator(spells_it_oddly)]
    tools.tool(secret="api_key")(sign_in)

    with own_site.worker_here(tools):
        record = own_site.wait_for(own_site.submit("sign_in", api_key=SECRET), State.REFUSED)

    assert "s-k-" not in str(record.fields) + caplog.text
    assert record.failure
    assert record.failure.message.endswith("$.api_key: a value that the tool's own rules accept")
    assert b"s-k-" not in everything(own_server)
