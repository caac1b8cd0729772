"""`toolonce keys seal`: what harnesses of one tenant seal their inbox entries with."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from tests.support.processes.command_line import CommandLine
from toolonce.store.model.keyring import VARIABLE, Keyring

NEW, OLD = "the newer key of the tests", "the older key of the tests"


@pytest.fixture
def toolonce(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    monkeypatch.setenv(VARIABLE, f"{NEW},{OLD}")
    return CommandLine(capsys, ())


def test_the_entry_key_is_derived_from_the_newest_key_as_the_protocol_says(toolonce: CommandLine) -> None:
    """faults 4"""
    expected = hmac.new(NEW.encode(), b"toolonce/2/entry/acme", hashlib.sha256).digest()

    said = toolonce("keys", "seal", "--tenant", "acme")

    assert said.code == 0
    assert base64.urlsafe_b64decode(said.out) == expected
    assert toolonce("keys", "seal", "--tenant", "acme", "--json").json == {
        "tenant": "acme", "entry_key": said.out.strip(), "key_id": Keyring.parse(NEW).newest_id,
    }  # fmt: skip


def test_each_tenant_has_an_entry_key_of_its_own(toolonce: CommandLine) -> None:
    printed = {toolonce("keys", "seal", "--tenant", tenant).out for tenant in ("acme", "umbrella", "acme2")}

    assert len(printed) == 3
    assert NEW not in "".join(printed)


@pytest.mark.parametrize(
    ("words", "keys", "told"),
    [
        (("keys", "seal", "--tenant", "acme"), "", VARIABLE),
        (("keys", "seal", "--tenant", "a/b"), NEW, "without ':' and '/'"),
        (("keys", "seal", "--tenant", ""), NEW, "printable"),
        (("keys", "seal"), NEW, "--tenant"),
        (("keys",), NEW, "ACTION"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(
    toolonce: CommandLine, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], keys: str, told: str
) -> None:
    monkeypatch.setenv(VARIABLE, keys)

    said = toolonce(*words)

    assert said.code == 2
    assert told in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""
