"""Three calls of one turn: the answers take 0.4, 0.6 and 0.8 seconds, and together as long as the slowest.

Run it: ``python -m toolonce.ops.example_three_cities``. It starts a server of its own and a worker, asks for the three
cities one after the other and at once, and prints both times.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ..stream.client import Client
from ..stream.turn import ToolCall
from ..worker import Registry

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


@contextmanager
def worker(url: str) -> Iterator[None]:
    """A worker process for these tools, ready when this returns."""
    command = [sys.executable, "-m", __package__, "work", "--tools", f"{__package__}.example_three_cities:tools"]
    with subprocess.Popen([*command, "--redis", url, "--log-level", "warning"], start_new_session=True) as process:
        try:
            yield
        finally:
            process.terminate()


def main() -> int:
    from .embedded import transient_server

    with transient_server() as server, worker(server.url), Client(server.url, scope="example") as client:
        _until_ready(client)
        in_turn, answers = ask(client, ordered=True, turn_id="in turn")
        at_once, same = ask(client, ordered=False, turn_id="at once")
    sys.stdout.write(f"one after the other {in_turn:.2f} s, at once {at_once:.2f} s: {', '.join(answers)}\n")
    return 0 if answers == same else 1


def _until_ready(client: Client) -> None:
    """The worker publishes its tools when it starts; until then nothing can be admitted."""
    from ..store.errors import NoToolsPublished

    while True:
        try:
            ask(client, ordered=False, turn_id="warm-up")
            return
        except NoToolsPublished:
            time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main())
