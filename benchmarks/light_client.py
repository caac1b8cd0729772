"""A client that drives a store by its operations alone, many of them in one round trip, and runs no handler.

`checkouts` starts it in a process of its own, with the project's packages of any checkout on its path:

    light_client.py submit URL COUNT    submit calls in turns of 10 by the public client, one turn after the other
    light_client.py admit URL COUNT     admit calls in turns of 10, 32 turns in a round trip
    light_client.py drain URL COUNT     take, claim and settle 16 calls at a time until the queue is empty
    light_client.py steps URL COUNT     after 200 calls to warm up: each step for all calls before the next step

The last two write ``{"phase": NAME}`` before each phase and wait for a line, so that whoever started them can read a
meter; then they write what they did: ``{"calls": N, "seconds": S, "cpu_seconds": S}``.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import hiredis
from hiredis import pack_command

import toolonce.store

TURN = 10
TURNS = 10  # of one conversation
AT_ONCE = 32
SLOTS = 16  # calls that one draining client has in hand
WARM = 200
LEASE_MS = 30_000
POINTER_QUEUE = "default"


def _store(module: str, before: str) -> Any:
    """A module of the store. A checkout from before the folders has it under another name."""
    there = Path(toolonce.store.__file__).parent / f"{module.replace('.', '/')}.py"
    return import_module(f"toolonce.store.{module if there.exists() else before}")


_CONNECTION = _store("connections.connection", "connection")
_ADMISSION = _store("operations.admission", "admission")
_RUNS = _store("operations.runs", "execution")
_TOOLS = _store("operations.tools", "specs")
_IDENTITY = _store("model.identity", "identity")
_STATES = _store("model.states", "states")
GOES_ON = hasattr(_RUNS, "NextClaim")  # else the end of a call does not bring the next one


class LightClient:
    """One connection to a store. Replies are read as the store's operations read them."""

    def __init__(self, url: str) -> None:
        from our_tools import tools

        self._specs = tools.specs()
        self._spec = next(spec for spec in self._specs if spec.name == "noop")
        connection = _CONNECTION.Connection(url)
        self.space = connection.space
        connection.run(_TOOLS.publish(self.space, self._specs))
        connection.close()
        self._socket = _connected(url)
        self._reader = hiredis.Reader()
        self._loaded: set[str] = set()
        self._queue = (self.space.queue_key(POINTER_QUEUE), self.space.intermediate_key(POINTER_QUEUE))
        self._taken = 0
        self._turns = 0

    def admit(self, name: str, count: int) -> None:
        """Admit calls in turns whose ids begin with `name`."""
        for admitted in self._run([self._admission(f"{name}-{first}") for first in range(0, count, TURN)]):
            assert admitted is not None

    def take(self, count: int, at_once: int = AT_ONCE) -> list[Any]:
        """At most so many pointers from the queue, as deliveries."""
        replies = self._send([("LMOVE", *self._queue, "LEFT", "RIGHT")] * count, at_once)
        return [self._delivery(reply.decode()) for reply in replies if reply is not None]

    def claim(self, deliveries: Sequence[Any]) -> list[Any]:
        """The runs of these deliveries."""
        runs = self._run([_RUNS.claim(self.space, delivery, lease_ms=LEASE_MS) for delivery in deliveries])
        assert all(isinstance(run, _RUNS.Run) for run in runs), "each call that was taken is claimed"
        return runs

    def settle(self, runs: Sequence[Any]) -> list[Any]:
        """Store an outcome of each; the runs that come with that, one for each slot as long as there are any."""
        ending = _RUNS.Ending(_STATES.State.SUCCEEDED, "1")
        answers = self._run(
            [_RUNS.settle(self.space, run, ending, **self._wish(slot)) for slot, run in enumerate(runs)]
        )
        assert all(answer.verdict == "settled" for answer in answers)
        return [answer.next for answer in answers if GOES_ON and answer.next]

    def _admission(self, turn_id: str) -> Any:
        self._turns += 1
        space, scope = self.space.name, f"bench/{self._turns // TURNS}"
        turn = _ADMISSION.Turn(scope, turn_id, _IDENTITY.turn_key(space, scope, turn_id))
        calls = []
        for n in range(TURN):
            key = _IDENTITY.call_key(space, scope, turn_id, _IDENTITY.reference(str(n), 1))
            known = _ADMISSION.Identified(key, (_IDENTITY.fingerprint(self._spec.name, {"n": n}),))
            arguments = json.dumps({"n": n})
            new = _ADMISSION.NewCall(known, self._spec.name, arguments, n, f"call_{key[:24]}", spec=self._spec)
            calls.append(new)
        return _ADMISSION.admit(self.space, turn, calls, request=_ADMISSION.Request(turn_id))

    def _delivery(self, job: str) -> Any:
        return _RUNS.Delivery(job, POINTER_QUEUE, self._token(), "worker-1")

    def _token(self) -> str:
        self._taken += 1
        return f"{os.getpid():07}.{self._taken:07}"

    def _wish(self, slot: int) -> dict[str, Any]:
        if not GOES_ON:
            return {}
        return {"wish": _RUNS.NextClaim(POINTER_QUEUE, self._token(), f"{os.getpid():07}.{slot:03}", LEASE_MS)}

    def _run(self, invocations: Sequence[Any]) -> list[Any]:
        for script in {invocation.script for invocation in invocations}:
            if script.name not in self._loaded:
                self._send([("SCRIPT", "LOAD", script.text)])
                self._loaded.add(script.name)
        replies = self._send([invocation.command() for invocation in invocations])
        return [invocation.read(reply) for invocation, reply in zip(invocations, replies, strict=True)]

    def _send(self, commands: Sequence[tuple[Any, ...]], at_once: int = AT_ONCE) -> list[Any]:
        replies: list[Any] = []
        for first in range(0, len(commands), at_once):
            some = commands[first : first + at_once]
            self._socket.sendall(b"".join(pack_command(command) for command in some))
            replies += [self._reply() for _ in some]
        return replies

    def _reply(self) -> Any:
        while (reply := self._reader.gets()) is False:
            received = self._socket.recv(1 << 20)
            if not received:
                raise EOFError("the server has closed the connection")
            self._reader.feed(received)
        if isinstance(reply, Exception):
            raise reply
        return reply


def _connected(url: str) -> socket.socket:
    where = urlsplit(url)
    if where.scheme == "unix":
        local = socket.socket(socket.AF_UNIX)
        local.connect(where.path)
        return local
    remote = socket.create_connection((where.hostname or "", where.port or 0))
    remote.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return remote


def submit(url: str, count: int) -> None:
    """As a harness does: its calls are judged, looked up and admitted, turn by turn."""
    from toolonce.stream import Client, ToolCall

    LightClient(url)  # publishes the specs
    with Client(url, scope="bench") as client:
        for first in range(0, count, TURN):
            numbers = range(first, min(count, first + TURN))
            calls = [ToolCall("noop", {"n": n}, f"call_{n:024d}", "function", n - first) for n in numbers]
            client.submit_calls(calls, turn_id=f"submit-{os.getpid()}-{first}")


def drain(client: LightClient) -> Iterator[tuple[str, int]]:
    """All phases of a draining client: one."""
    calls = 0
    yield "drain", 0
    while deliveries := client.take(SLOTS):
        runs = client.claim(deliveries)
        while runs:
            calls += len(runs)
            runs = client.settle(runs)
    yield "", calls


def steps(client: LightClient, count: int) -> Iterator[tuple[str, int]]:
    """Each step of a call for all calls, one step a phase; where the end of a call brings the next one, only the first
    ones are taken and claimed. Tokens and ids are as long in each run."""
    client.admit("warm", WARM)
    client.settle(client.claim(client.take(WARM)))
    yield "admit", 0
    client.admit("steps", count)
    yield "take", 0
    deliveries = client.take(AT_ONCE if GOES_ON else count)
    yield "claim", 0
    runs, calls = client.claim(deliveries), 0
    yield "settle", 0
    while runs:
        calls += len(runs)
        runs = client.settle(runs)
    yield "", calls


def phased(phases: Iterator[tuple[str, int]]) -> None:
    """Run the phases, each when a line comes; then tell what was done."""
    started = cpu = 0.0
    for phase, calls in phases:
        if phase:
            print(json.dumps({"phase": phase}), flush=True)
            sys.stdin.readline()
            started, cpu = started or time.perf_counter(), cpu or time.process_time()
        else:
            done = {"calls": calls, "seconds": time.perf_counter() - started}
            print(json.dumps({**done, "cpu_seconds": time.process_time() - cpu}), flush=True)


def main() -> int:
    what, url, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if what == "submit":
        submit(url, count)
        return 0
    client = LightClient(url)
    if what == "admit":
        client.admit(f"fill-{os.getpid()}", count)
    elif what == "drain":
        phased(drain(client))
    else:
        phased(steps(client, count))
    return 0


if __name__ == "__main__":
    sys.exit(main())
