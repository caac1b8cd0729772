"""A conversation with the local provider server, as a test holds it or as a process that may be killed at each step.

Run as a program it says one thing and prints the answer; `TOOLONCE_TEST_KILL` names the step at which it kills itself.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

import httpx2

from tests.support.stream.wire_paths import PATHS
from toolonce.stream.agent.conversation import Conversation, Hooks, Terms
from toolonce.stream.dialects.request import request_body
from toolonce.stream.dialects.table import spec_of
from toolonce.stream.harness.batch import Batch
from toolonce.stream.harness.client import Client
from toolonce.stream.provider.retry import Budget, httpx_opener
from toolonce.stream.replies.protocol import Message
from toolonce.stream.turns.turn import Dialect, TurnResult

KILL = "TOOLONCE_TEST_KILL"
STEPS = ("asked", "turn", "submitted", "waited", "replied")
"""Where a harness may die: with the question noted; with a turn that came; after its calls were submitted; after they
ended; with the final turn that came."""


def talk(client: Client, http: httpx2.Client, server: str, dialect: Dialect, **more: Any) -> Conversation:
    def ask(messages: list[Message]) -> Any:
        body = request_body({"model": "m"}, messages, dialect)
        return httpx_opener(http, http.build_request("POST", server + PATHS[dialect], json=body))

    terms = more.pop("terms", Terms(wait_s=60, budget=Budget(attempts=2)))
    return Conversation(client, dialect, ask, terms=terms, **more)


class Dying:
    """Kills the process at a step, the first time it is reached."""

    def __init__(self, step: str) -> None:
        self.step = step

    def reached(self, step: str) -> None:
        if step == self.step:
            os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    url, namespace, server, dialect, text, step = sys.argv[1:]
    dying = Dying(os.environ.get(KILL, ""))
    with Client(url, scope="tenant-1/talk-1", namespace=namespace) as client, httpx2.Client(timeout=60) as http:

        def on_turn(turn: TurnResult) -> None:
            dying.reached("turn" if turn.calls else "replied")

        def on_batch(batch: Batch) -> None:
            dying.reached("submitted")
            if dying.step == "waited":
                batch.wait(60)
                dying.reached("waited")

        conversation = talk(
            client, http, server, spec_of(dialect).name, hooks=Hooks(on_turn=on_turn, on_batch=on_batch)
        )
        if dying.step == "asked":
            conversation._ask = lambda _messages: dying.reached("asked")  # type: ignore[assignment,return-value]
        answer = conversation.say(text, step=step)
        print("answer", json.dumps({"text": answer.text, "ended": answer.ended}), flush=True)


if __name__ == "__main__":
    main()
