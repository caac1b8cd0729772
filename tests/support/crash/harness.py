"""A harness as a process: it submits one turn of two calls, waits for them, and prints what it was told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from toolonce.store.model.errors import StoreFull
from toolonce.stream.harness.client import Client
from toolonce.stream.turns.turn import ToolCall

SCOPE = "tenant-1/talk-1"
TURN = "turn-1"


def two_calls(kind: str, arguments: dict[str, Any]) -> list[ToolCall]:
    """A call, and one in its lane that has to wait for it and does nothing special."""
    return [
        ToolCall(kind, arguments, "call_0", "function", 0),
        ToolCall(kind, {"lane": arguments["lane"]}, "call_1", "function", 1),
    ]


def main(words: Sequence[str]) -> int:
    """`harness URL NAMESPACE KIND ARGUMENTS`; prints the states of both calls, or `full`."""
    url, namespace, kind, arguments = words
    with Client(url, scope=SCOPE, namespace=namespace) as client:
        try:
            batch = client.submit_calls(two_calls(kind, json.loads(arguments)), turn_id=TURN)
        except StoreFull:
            print("full", flush=True)
            return 1
        outcomes = batch.wait(timeout=60)
    print("heard", *(outcome.state for outcome in outcomes), flush=True)
    return 0
