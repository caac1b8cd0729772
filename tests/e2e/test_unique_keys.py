"""Equal and unequal calls under one unique key, at once from four processes on a real server; effects are counted in a
file. However the first one ends: one effect while the key is held, and one answer for each call."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes.processes import Child
from tests.support.processes.unique_tools import TOOLS, plan, tools
from tests.support.processes.workers import Site
from tests.support.servers.redis_server import RealServer
from tests.support.wait import wait_until
from toolonce.store.model.outcomes import Failure
from toolonce.store.model.states import SETTLED, State
from toolonce.store.operations.operators import Actor, Expected, cancel, resolve, retry
from toolonce.store.operations.recovery import Retention, forget, purge

PROCESSES, EACH = 4, 6
KEYS = ("the old key of the tests", "the new key of the tests")
ROTATION = (f"{KEYS[0]},{KEYS[1]}", f"{KEYS[1]},{KEYS[0]}")

HARNESS = """
import json, sys, threading
from concurrent.futures import ThreadPoolExecutor
from toolonce.stream import Client, ToolCall

url, namespace, who, each = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
client = Client(url, scope="tenant-1/talk-1", namespace=namespace)
together = threading.Barrier(2 * each)

def submit(number):
    together.wait()
    call = ToolCall("bill", {"order": "A17", "cents": 5 + number % 2}, "call_0", "function", 0)
    return client.submit_calls([call], turn_id=f"turn-{who}-{number}")

print("ready", flush=True)
sys.stdin.readline()
with ThreadPoolExecutor(2 * each) as pool:
    batches = list(pool.map(submit, range(2 * each)))
    print("submitted", flush=True)
    outcomes = [outcomes[0] for outcomes in pool.map(lambda batch: batch.wait(60), batches)]
print("heard", json.dumps([[outcome.key, str(outcome.state), outcome.replayed, outcome.value] for outcome in outcomes]))
client.close()
"""


class Crowd:
    """The calls of all processes, by what the first of them asked for."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.first = ""
        self.equal: list[str] = []
        self.others: list[str] = []

    def sort(self) -> None:
        root = f"{self.site.connection.space.root}call:"
        found = self.site.connection.command("KEYS", f"{root.replace('{', '[{]').replace('}', '[}]')}*")
        calls = sorted(key.decode().removeprefix(root) for key in found)
        refused = {key for key in calls if self.site.state(key) is State.REFUSED}
        self.others = sorted(refused)
        self.equal = [key for key in calls if key not in refused]
        [self.first] = [key for key in self.equal if not self.site.record(key).fields.follows]

    @property
    def followers(self) -> list[str]:
        return [key for key in self.equal if key != self.first]

    def states(self) -> Counter[str]:
        return Counter(self.site.state(key).value for key in self.equal)


@pytest.fixture
def site(redis_server: RealServer, namespace: str, tmp_path: Path) -> Iterator[Site]:
    opened = Site(redis_server.url, namespace, tmp_path)
    opened.publish(tools)
    yield opened
    opened.close()


def _submit_at_once(site: Site, stack: ExitStack, keyrings: tuple[str, ...] = ("",)) -> tuple[list[Child], Crowd]:
    """All processes have submitted, and wait for their outcomes."""
    harnesses = []
    for number in range(PROCESSES):
        env = {"TOOLONCE_KEYS": keyrings[number % len(keyrings)]}
        command = (sys.executable, "-c", HARNESS, site.url, site.namespace, str(number), str(EACH))
        harnesses.append(stack.enter_context(Child(*command, env=env)))
    for harness in harnesses:
        harness.wait_for_line("ready")
    for harness in harnesses:
        harness.send_line("go")
    for harness in harnesses:
        harness.wait_for_line("submitted")
    crowd = Crowd(site)
    crowd.sort()
    assert len(crowd.equal) + len(crowd.others) == 2 * EACH * PROCESSES
    codes = {failure.code for key in crowd.others if (failure := site.record(key).failure)}
    assert codes == {"unique_taken"}
    return harnesses, crowd


def _heard(harnesses: list[Child]) -> dict[str, tuple[str, bool, Any]]:
    """What each harness heard of each call, at its end."""
    told = {}
    for harness in harnesses:
        for key, state, replayed, value in json.loads(harness.wait_for_line("heard (.*)", 60).group(1)):
            told[key] = (state, replayed, value)
    return told


def _check(site: Site, crowd: Crowd, effects: int) -> None:
    assert site.ledger.count("billed") == effects
    stats = site.stats()
    assert stats.balanced
    assert stats.counts["admitted"] == 2 * EACH * PROCESSES
    for key in crowd.followers:
        ends = [line for line in site.record(key).history if line.get("to") and State(line["to"]).is_settled]
        assert len(ends) <= 1, f"{key} has more than one answer: {ends}"


def _seen(site: Site, key: str) -> Expected:
    record = site.record(key)
    return Expected(key, record.state, record.fence)


@pytest.mark.parametrize("keyrings", [("",), ROTATION], ids=["one key", "rotation"])
@pytest.mark.parametrize(
    ("words", "first", "followers"),
    [
        (("succeed",), State.SUCCEEDED, State.SUCCEEDED),
        (("no_effect",), State.FAILED, State.SUCCEEDED),
        (("fail",), State.FAILED, State.FAILED),
    ],
    ids=["succeeds", "fails before its effect", "fails after its effect"],
)
def test_many_calls_at_once_have_one_effect_and_one_answer_each(
    site: Site, words: tuple[str, ...], first: State, followers: State, keyrings: tuple[str, ...]
) -> None:
    plan(site.ledger, "A17", *words)
    with ExitStack() as stack:
        stack.enter_context(site.worker(tools=TOOLS))
        harnesses, crowd = _submit_at_once(site, stack, keyrings)
        site.ledger.open_gate("A17")
        heard = _heard(harnesses)
        wait_until(site.at_rest, description="every call is at rest")

    assert heard[crowd.first][0] == first
    assert Counter(heard[key][0] for key in crowd.followers) == {followers.value: len(crowd.followers)}
    replayed = [key for key in crowd.followers if heard[key][1]]
    runs_itself = 1 if words == ("no_effect",) else 0
    assert len(replayed) == len(crowd.followers) - runs_itself
    assert len({json.dumps(heard[key][2]) for key in crowd.followers}) == 1
    _check(site, crowd, 1)


@pytest.mark.parametrize("word", ["succeeded", "failed"])
def test_many_calls_at_once_wait_for_a_word_about_the_first_that_is_unknown(site: Site, word: str) -> None:
    """The operator has looked: the first had its effect, or it had none and the ledger's line is another's."""
    plan(site.ledger, "A17", "doubt")
    with ExitStack() as stack:
        stack.enter_context(site.worker(tools=TOOLS))
        harnesses, crowd = _submit_at_once(site, stack)
        site.ledger.open_gate("A17")
        heard = _heard(harnesses)  # waiting for them ends, since nobody knows
        assert heard[crowd.first][0] == "unknown"
        assert Counter(heard[key][0] for key in crowd.followers) == {"held": len(crowd.followers)}
        _check(site, crowd, 1)

        said = '"found"' if word == "succeeded" else Failure("not_there", "it is not there")
        site.connection.run(resolve(site.connection.space, _seen(site, crowd.first), said, Actor("ann", "looked")))
        for key in crowd.followers:
            site.wait_for(key, State.SUCCEEDED)
    _check(site, crowd, 1 if word == "succeeded" else 2)


def test_many_calls_at_once_go_on_with_the_next_one_when_the_first_is_cancelled(site: Site) -> None:
    site.ledger.open_gate("A17")
    with ExitStack() as stack:
        harnesses, crowd = _submit_at_once(site, stack)
        done = site.connection.run(cancel(site.connection.space, Expected(crowd.first), Actor("ann")))
        assert done.verdict == "cancelled"
        stack.enter_context(site.worker(tools=TOOLS))
        heard = _heard(harnesses)
    assert heard[crowd.first][0] == "cancelled"
    assert Counter(heard[key][0] for key in crowd.followers) == {"succeeded": len(crowd.followers)}
    _check(site, crowd, 1)


def test_a_retry_of_the_first_is_one_more_effect_in_an_operators_name_and_none_for_the_others(site: Site) -> None:
    plan(site.ledger, "A17", "fail")
    with ExitStack() as stack:
        stack.enter_context(site.worker(tools=TOOLS))
        harnesses, crowd = _submit_at_once(site, stack)
        site.ledger.open_gate("A17")
        _heard(harnesses)
        space, ann = site.connection.space, Actor("ann", "once more")
        follower = crowd.followers[0]
        refused = site.connection.run(retry(space, _seen(site, follower), Actor("ann", "this one too")))
        assert (refused.verdict, refused.detail) == ("taken", crowd.first)
        assert site.connection.run(retry(space, _seen(site, crowd.first), ann)).verdict == "queued"
        site.wait_for(crowd.first, State.SUCCEEDED)
    assert Counter(site.state(key) for key in crowd.followers) == {State.FAILED: len(crowd.followers)}
    _check(site, crowd, 2)


def test_a_purged_first_keeps_its_key_and_a_forgotten_one_gives_it_up(site: Site) -> None:
    site.ledger.open_gate("A17")
    with ExitStack() as stack:
        stack.enter_context(site.worker(tools=TOOLS))
        harnesses, crowd = _submit_at_once(site, stack)
        _heard(harnesses)
        cents = json.loads(site.record(crowd.first).fields.args)["cents"]
        calls = [("bill", {"order": "A17", "cents": given}) for given in (cents, 99)]

        assert site.connection.run(purge(site.connection.space, [crowd.first])) == ("forgotten",)
        equal, other = site.submit_outcomes(calls)
        assert (equal.state, equal.is_forgotten, other.state) == (State.SUCCEEDED, True, State.REFUSED)
        assert site.ledger.count("billed") == 1

        for _ in range(2):
            for state in SETTLED:
                site.connection.run(forget(site.connection.space, state, Retention(body_ms=1, tombstone_ms=1)))
        again, _ = site.submit_all(calls)
        site.wait_for(again, State.SUCCEEDED)
        assert site.ledger.count("billed") == 2
