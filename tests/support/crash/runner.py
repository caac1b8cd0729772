"""The story of one cell of the crash matrix: a process comes to the point, something happens to it, and the rest of the
world goes on until nothing moves any more.

Every step waits for a fact, so each experiment is the same on a fast and on a slow machine.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.crash.cells import HARNESS_POINTS, Cell, Death, Rest, state_behind
from tests.support.crash.process_starter import ProcessStarter, StartedProcess
from tests.support.crash.site import CrashSite
from tests.support.crash.tools import open_gate
from tests.support.wait import wait_until
from toolonce.store.model.states import State
from toolonce.store.operations.operation import load

PATIENCE_S = 90
_BY_PROXY = (Death.UNREACHABLE, Death.REPLIES_LOST)
_LEASES_MS = {Death.KILLED: 500, Death.STOPPED: 500, Death.UNREACHABLE: 1_500}
_LONG_MS, _RENEWED_MS = 10_000, 1_500
"""Where the lease must not run out; and where a renewal is waited for."""
# The first thing that the victim asks the server behind each point.
_NEXT = {
    "before_admit": "admit", "after_admit_reply_lost": "turn", "after_blmove": "claim", "after_claim": "settle",
    "before_begin": "begin", "after_effect": "settle", "before_settle": "settle", "in_renew": "renew",
    "in_recovery": "reclaim",
}  # fmt: skip


class Found(NamedTuple):
    """What came of it: how the call came to rest, and its history for whoever wonders."""

    rest: Rest
    history: str


def run(cell: Cell, starter: ProcessStarter, folder: Path) -> Found:
    """Do the experiment.

    Raises:
        AssertionError: something did not come to rest, is stuck or was lost; or the call behind did not go on.
    """
    with CrashSite(starter, folder) as site:
        return _Story(site, cell).tell()


class _Story:
    def __init__(self, site: CrashSite, cell: Cell) -> None:
        self._site = site
        self._cell = cell
        self._arguments: dict[str, Any] = {"lane": "one"}
        if cell.point == "before_begin":
            self._arguments["how"] = {"begin": True}
        if cell.point == "in_renew":
            self._arguments["how"] = {"gate": "inside", "arm": self._crash}
        self._by_harness = cell.point in HARNESS_POINTS

    def tell(self) -> Found:
        deaths: dict[Death, Callable[[StartedProcess], None]] = {
            Death.KILLED: self._killed,
            Death.STOPPED: self._stopped,
            Death.SERVER_KILLED: self._server_killed,
            Death.UNREACHABLE: self._unreachable,
            Death.REPLIES_LOST: self._replies_lost,
            Death.MEMORY_FULL: self._memory_full,
        }
        deaths[self._cell.death](self._victim())
        return self._look()

    # -- the victim on its way to the point

    def _victim(self) -> StartedProcess:
        cell, site = self._cell, self._site
        url = site.proxy.url if cell.death in _BY_PROXY else ""
        crash = self._crash
        if self._by_harness:
            return self._wait_for(site.harness(cell.kind, self._arguments, url=url, crash=crash))
        self._submit()
        if cell.point == "in_recovery":
            self._leave_an_orphan()
            # Behind the first step of recovery, which ends the lease; or before it, where its reply is to be lost.
            crash += "@1" if cell.death is Death.REPLIES_LOST else "@2"
        if cell.point == "in_renew":
            crash = ""  # the handler arms it, so that it comes after the effect
        return self._wait_for(site.worker(lease_ms=self._lease_ms(), url=url, crash=crash))

    @property
    def _crash(self) -> str:
        return f"{self._cell.point}:{'kill' if self._cell.death is Death.KILLED else 'stop'}"

    def _wait_for(self, victim: StartedProcess) -> StartedProcess:
        if self._cell.death is Death.KILLED:
            victim.wait_until_gone()
        else:
            victim.wait_until_stopped()
        return victim

    def _lease_ms(self) -> int:
        short = _LEASES_MS.get(self._cell.death)
        return short or (_RENEWED_MS if self._cell.point == "in_renew" else _LONG_MS)

    def _submit(self) -> None:
        self._site.submit(self._cell.kind, self._arguments)

    def _leave_an_orphan(self) -> None:
        self._site.worker(crash="after_effect").wait_until_gone()
        first = self._site.calls()[0]
        wait_until(lambda: self._site.lease_has_run_out(first), PATIENCE_S, "the orphan's lease runs out")

    def _open_gate(self) -> None:
        open_gate(self._site.ledger.path, "inside")

    # -- the deaths

    def _killed(self, victim: StartedProcess) -> None:
        self._open_gate()
        self._others_go_on()

    def _stopped(self, victim: StartedProcess) -> None:
        self._open_gate()
        self._others_go_on()
        self._wait_for_rest()
        victim.resume()
        self._end(victim)

    def _server_killed(self, victim: StartedProcess) -> None:
        self._open_gate()
        self._site.server.kill9()
        victim.resume()
        self._site.server.start()
        self._site.worker()
        self._wait_for_rest()
        self._end(victim)

    def _unreachable(self, victim: StartedProcess) -> None:
        cell, site = self._cell, self._site
        self._open_gate()
        site.proxy.stall()
        victim.resume()
        if cell.point == "after_claim" and cell.kind != "begins":
            first = site.calls()[0]
            wait_until(lambda: site.ledger.effects(first), PATIENCE_S, "the handler goes on without a server")
        self._others_go_on()
        self._wait_for_rest()
        site.proxy.resume()
        self._end(victim)

    def _replies_lost(self, victim: StartedProcess) -> None:
        cell, proxy = self._cell, self._site.proxy
        self._open_gate()
        script = "begin" if (cell.point, cell.kind) == ("after_claim", "begins") else _NEXT.get(cell.point)
        proxy.drop_reply_to(load(script).sha.encode() if script else b"BLMOVE", times=2)
        victim.resume()
        self._site.worker()
        wait_until(lambda: not proxy.armed, PATIENCE_S, "two replies are lost")
        self._wait_for_rest()
        self._end(victim)

    def _memory_full(self, victim: StartedProcess) -> None:
        site, cell = self._site, self._cell
        self._open_gate()
        site.store.redis.config_set("maxmemory", 1)
        victim.resume()
        if cell.point == "before_admit":
            victim.wait_for_line("full")
            assert not site.calls()
        elif cell.point in ("after_effect", "before_settle"):
            first = site.calls()[0]
            wait_until(lambda: site.state(first) is State.SUCCEEDED, PATIENCE_S, "what ran settles on a full server")
        elif cell.point != "after_admit_reply_lost":
            wait_until(site.has_refused_for_memory, PATIENCE_S, "something is refused since there is no memory")
        site.store.redis.config_set("maxmemory", 0)
        self._others_go_on()
        self._wait_for_rest()
        self._end(victim)

    def _others_go_on(self) -> None:
        """A harness repeats what it had no answer to; a worker is there."""
        if self._by_harness:
            self._submit()
        self._site.worker()

    def _end(self, victim: StartedProcess) -> None:
        """Let the victim finish what it is at."""
        if not self._by_harness:
            victim.drain()
            return
        victim.wait_until_gone()
        if (self._cell.point, self._cell.death) != ("before_admit", Death.MEMORY_FULL):
            assert "heard succeeded succeeded" in victim.output, f"the harness is told: {victim.output}"

    # -- rest

    def _is_at_rest(self) -> bool:
        match tuple(self._site.states().values()):
            case (State.UNKNOWN, State.HELD):
                return self._cell.kind != "reconcile"
            case (State.SUCCEEDED, State.UNKNOWN):  # as far as others know, until the victim goes on
                return (self._cell.point, self._cell.kind) == ("after_settle", "mutating")
            case (State() as first, State() as behind):
                return first.is_settled and behind.is_settled
            case _:
                return False

    def _wait_for_rest(self) -> None:
        try:
            wait_until(self._is_at_rest, PATIENCE_S)
        except AssertionError:
            raise AssertionError(f"it does not come to rest: {self._histories()}") from None

    def _histories(self) -> str:
        return "\n".join(str(event) for key in self._site.calls() for event in self._site.record(key).history)

    def _look(self) -> Found:
        site, cell = self._site, self._cell
        self._wait_for_rest()
        wait_until(site.has_no_pointers, PATIENCE_S, "no pointer is left in the queue")
        keys = site.calls()
        site.check_nothing_is_stuck(keys)
        states = [site.state(key) for key in keys]
        goes_on = state_behind(self._cell, states[0])
        assert states[1] is goes_on, f"the call behind is {states[1]}, not {goes_on}: {self._histories()}"
        entries = [site.ledger.entries(key) for key in keys]
        self._submit()  # a replay: whoever asks again is told, and nothing runs
        again = ([site.state(key) for key in keys], [site.ledger.entries(key) for key in keys])
        assert again == (states, entries), f"asked again: {again}, before: {states}, {entries}"
        is_mutating = cell.kind not in ("read", "idempotent")
        effects = site.ledger.effects(keys[0]) if is_mutating else site.ledger.distinct(keys[0])
        return Found(Rest(states[0], effects), self._histories())
