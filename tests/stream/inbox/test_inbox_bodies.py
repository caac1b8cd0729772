"""Raw provider bytes in the inbox: what of the request the consumer has to be told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography.fernet import Fernet

from tests.support.stream.harness import Bench
from tests.support.stream.inbox import Inbox
from tests.support.stream.speech import stream
from toolonce.store.model.keyring import Keyring
from toolonce.stream.inbox.consumer import Consumer

BODY = stream("anthropic", "turn-1", [("pay", "c1", {"n": 1})])
"""Its recorded usage is 7 output tokens."""


@pytest.fixture
def box(bench: Bench) -> Inbox:
    return Inbox(bench)


@pytest.fixture
def consumer(bench: Bench) -> Iterator[Consumer]:
    consumer = Consumer(bench.store.connection, name="one")
    yield consumer
    consumer.close()


def test_a_provider_s_error_that_is_no_utf_8_quarantines_its_entry_once(box: Inbox, consumer: Consumer) -> None:
    """faults 24: the reason is stored, with U+FFFD for a lone surrogate."""
    error = r'{"type": "error", "error": {"type": "overloaded_error", "message": "busy \ud800"}}'
    entry = box.add(turn="1", body=f"event: error\ndata: {error}\n\n", dialect="anthropic")
    assert consumer.step(0.01) == 1

    [answer] = box.answers(entry)
    assert answer["state"] == "quarantined"
    assert json.loads(answer["error"])["message"].isprintable()


def test_a_body_that_used_up_the_tokens_of_its_request_is_quarantined_as_truncated(
    box: Inbox, consumer: Consumer
) -> None:
    """Faults 19."""
    cut, whole = (box.add(body=BODY, dialect="anthropic", max_tokens=most) for most in ("7", "8"))
    consumer.step(0.01)

    assert [box.answers(entry)[0]["state"] for entry in (cut, whole)] == ["quarantined", "admitted"]
    assert "used up its 7 tokens" in json.loads(box.answers(cut)[0]["error"])["message"]


@pytest.mark.parametrize(
    "fields",
    [
        {"body": BODY, "dialect": "anthropic", "max_tokens": "0"},
        {"body": BODY, "dialect": "anthropic", "max_tokens": ""},
        {"body": BODY, "dialect": "anthropic", "max_tokens": "7.5"},
        {"turn": "1", "calls": [{"name": "pay", "arguments": {"n": 1}}], "max_tokens": "7"},
    ],
)
def test_a_limit_of_tokens_that_cannot_be_read_parks_the_entry(
    box: Inbox, consumer: Consumer, fields: dict[str, Any]
) -> None:
    entry = box.add(**fields)
    consumer.step(0.01)

    [answer] = box.answers(entry)
    assert answer["state"] == "quarantined"
    assert "max_tokens" in json.loads(answer["error"])["message"]


@pytest.mark.parametrize("sealed", [False, True])
def test_a_binary_stream_comes_in_as_the_bytes_it_is(box: Inbox, sealed: bool) -> None:
    data = stream("bedrock-converse", "", [("pay", "c1", {"n": 1})])
    keys = Keyring.parse("k" * 32)
    consumer = Consumer(box.bench.store.connection, name="one", keyring=keys)
    body = Fernet(keys.entry_key(box.tenant)).encrypt(data) if sealed else data
    entry = box.add(turn="1", body=body, dialect="bedrock-converse", sealed="1" if sealed else "0")
    consumer.step(0.01)
    consumer.close()

    assert box.answers(entry)[0]["state"] == "admitted"
