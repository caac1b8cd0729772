"""Three calls of one turn: the answers take 0.4, 0.6 and 0.8 seconds, and together as long as the slowest.

Run it: ``python -m toolonce.ops.examples.three_cities``. It starts a server of its own and a worker, asks for the three
cities one after the other and at once, and prints both times.
"""

from __future__ import annotations

import sys
import time

from ...stream.harness.client import Client
from ...stream.turns.turn import ToolCall
from ...worker import Registry

SECONDS = {"Oslo": 0.4, "Rome": 0.6, "Lima": 0.8}
tools = Registry()


@tools.tool(effect="read", timeout=10)
def weather(city: str) -> str:
    """Ask a slow service for the weather of a city."""
    time.sleep(SECONDS[city])
    return f"{city}: 21 degrees"


def ask(client: Client, *, ordered: bool, turn_id: str) -> tuple[float, list[str]]:
    """Submit the three calls; seconds until the last answer, and the answers in call order."""
    calls = [ToolCall("weather", {"city": city}, f"call_{n}", "function", n) for n, city in enumerate(SECONDS)]
    started = time.monotonic()
    outcomes = client.submit_calls(calls, turn_id=turn_id, ordered=ordered).wait(timeout=60)
    return time.monotonic() - started, [outcome.value for outcome in outcomes]


def main() -> int:
    from . import environment  # not for workers, who import this module for its tools

    with (
        environment.server() as server,
        environment.worker(server.url, "three_cities", "--log-level", "warning"),
        Client(server.url, scope="example") as client,
    ):
        environment.wait_for_tools(client)
        ask(client, ordered=False, turn_id="warm-up")
        in_turn, answers = ask(client, ordered=True, turn_id="in turn")
        at_once, same = ask(client, ordered=False, turn_id="at once")
    sys.stdout.write(f"one after the other {in_turn:.2f} s, at once {at_once:.2f} s: {', '.join(answers)}\n")
    return 0 if answers == same else 1


if __name__ == "__main__":
    sys.exit(main())
