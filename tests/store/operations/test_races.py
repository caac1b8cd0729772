"""Many at once, on a real server: one is first, the others hear of it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest

from tests.support.processes.processes import Child
from tests.support.servers.redis_server import RealServer
from tests.support.store.scene import Scene
from toolonce.store.connections.connection import Connection
from toolonce.store.model.states import State
from toolonce.store.operations import admission, operators, queries, runs
from toolonce.store.operations.runs import NotRun, Run

T = TypeVar("T")
CROWD = 50


@pytest.fixture
def crowd() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(CROWD) as pool:
        yield pool


def at_once(crowd: ThreadPoolExecutor, act: Callable[[int], T], number: int = CROWD) -> list[T]:
    """Let all act together; their answers."""
    barrier = threading.Barrier(number)

    def wait_and_act(index: int) -> T:
        barrier.wait()
        return act(index)

    return list(crowd.map(wait_and_act, range(number)))


def test_fifty_claims_of_one_call_give_one_run(real_scene: Scene, crowd: ThreadPoolExecutor) -> None:
    real_scene.submit()
    job = real_scene.pop() or ""
    deliveries = [real_scene.delivery(job) for _ in range(CROWD)]
    space, run = real_scene.space, real_scene.store.run
    answers = at_once(crowd, lambda at: run(runs.claim(space, deliveries[at], lease_ms=10_000)))
    assert Counter(type(answer) for answer in answers) == {Run: 1, NotRun: CROWD - 1}
    assert {answer.why for answer in answers if isinstance(answer, NotRun)} == {"busy"}


def test_fifty_submissions_of_one_call_store_one(real_scene: Scene, crowd: ThreadPoolExecutor) -> None:
    call, turn, space = real_scene.call(), real_scene.turn(), real_scene.space
    at_once(
        crowd,
        lambda at: real_scene.store.run(
            admission.admit(space, turn, [call], request=admission.Request(f"request-{at}"))
        ),
    )
    assert real_scene.stats().counts["admitted"] == len(real_scene.queued_jobs()) == 1


def test_fifty_operators_who_retry_one_call_queue_it_once(real_scene: Scene, crowd: ThreadPoolExecutor) -> None:
    run = real_scene.start()
    real_scene.fail(run)
    seen, space = real_scene.seen(run.call), real_scene.space
    words = [real_scene.word() for _ in range(CROWD)]
    answers = at_once(crowd, lambda at: real_scene.store.run(operators.retry(space, seen, words[at])).verdict)
    assert Counter(answers) == {"queued": 1, "changed": CROWD - 1}
    assert len(real_scene.queued_jobs()) == 1


def test_a_cap_holds_and_every_call_gets_its_turn_under_a_crowd(real_scene: Scene, crowd: ThreadPoolExecutor) -> None:
    real_scene.limit("tool:pay", 3)
    calls = [real_scene.submit(f"call-{at}") for at in range(60)]
    running, most = set[str](), [0]
    lock = threading.Lock()

    def work(_: int) -> None:
        scene = Scene(real_scene.store, audited=False)
        while scene.stats().counts.get("settled", 0) < len(calls):
            job = scene.pop()
            run = scene.claim(job) if job else None
            if isinstance(run, Run):
                with lock:
                    running.add(run.call)
                    most[0] = max(most[0], len(running))
                scene.stats()  # let the others try meanwhile
                with lock:
                    running.remove(run.call)
                scene.settle(run)

    at_once(crowd, work, number=8)
    assert most[0] <= 3
    assert set(real_scene.states(calls)) == {State.SUCCEEDED}


SUBMITTER = """
import sys
from toolonce.store.operations import admission
from toolonce.store.connections.connection import Connection
from toolonce.store.model.specs import ToolSpec
url, namespace, name, key = sys.argv[1:]
connection = Connection(url, namespace=namespace)
call = admission.NewCall(admission.Identified(key, ("f" * 32,)), "pay", "{}", 0, "a", spec=ToolSpec("pay"))
turn = admission.Turn("scope", "turn", "turn-key")
connection.command("PING")
print("ready", flush=True)
sys.stdin.readline()
for number in range(13):
    connection.run(admission.admit(connection.space, turn, [call], request=admission.Request(f"{name}-{number}")))
print("done", flush=True)
"""


def test_fifty_submissions_from_four_processes_store_one_call(redis_server: RealServer, namespace: str) -> None:
    key = "a" * 32
    children = [Child.python("-c", SUBMITTER, redis_server.url, namespace, name, key) for name in "abcd"]
    for child in children:
        child.wait_for_line("ready")
    for child in children:
        child.send_line("go")
    for child in children:
        child.wait_for_line("done")
        child.close()
    connection = Connection(redis_server.url, namespace=namespace)
    stats = connection.run(queries.stats(connection.space))
    connection.close()
    assert (stats.counts["admitted"], stats.queues["default"]) == (1, (1, 0))
