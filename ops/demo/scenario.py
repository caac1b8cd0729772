"""What the demo does, and what must have come true: first run, repetition, a killed worker.

Decides the steps and their claims. Knows nothing of where transcripts come from, or how server and worker are run.
"""

from __future__ import annotations

import json
import secrets
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from ...store.model.outcomes import Outcome
from ...store.model.states import State
from ...store.operations.queries import stats
from ...stream.decoding.decoder import TurnDecoder
from ...stream.decoding.detect import is_document
from ...stream.harness.batch import Batch
from ...stream.turns.drafts import ArgumentsDraft, CallDropped, CallOpened, Draft
from ...stream.turns.turn import Dialect, TurnResult
from ..options.inputs import decode
from ..views import outcome_view
from .environment import Environment
from .live_table import LiveTable

LARGEST_PIECE = 48
"""Bytes; small, so that every stream is cut in the middle of words and of characters."""
PAUSE_SECONDS = 0.002
PAID = {"paid": 250000}


@dataclass(frozen=True, slots=True)
class Transcript:
    """A recorded stream. Its name stands in for a turn id where the server sent none that can be used."""

    name: str
    dialect: Dialect
    body: bytes
    recorded: bool = False

    @property
    def title(self) -> str:
        return PurePath(self.name).name.removesuffix(".sse")

    @property
    def turn_id(self) -> str | None:
        """Ours have ids that can be trusted; of others nobody knows."""
        return self.name if self.recorded else None

    @property
    def is_whole(self) -> bool:
        """A response that was not streamed."""
        return is_document(self.body)

    def turn(self) -> TurnResult:
        return decode(self.body, self.dialect)


@dataclass(slots=True)
class Steps:
    """The steps on one environment, and the claims checked so far."""

    environment: Environment
    claims: list[tuple[str, bool]] = field(default_factory=list)
    answers: dict[str, tuple[Outcome, ...]] = field(default_factory=dict)

    def first_time(self, streams: Sequence[Transcript]) -> None:
        """Feed every stream in small random pieces, have its calls run, follow each to its outcome."""
        with LiveTable("1. provider streams in, one outcome per call out") as table:
            batches = {one: self._fed(table, one) for one in streams}
            self._follow(table, {one: batch for one, batch in batches.items() if batch})
        for one, batch in batches.items():
            turn = one.turn()
            if batch is None:
                self._claim(f"{one.title}: {turn.outcome}, so none of its calls ran", turn.outcome != "completed")
                continue
            complete = len(batch.outcomes) == len(turn.calls) + len(turn.rejected)
            rested = all(outcome.settled for outcome in batch.outcomes)
            self._claim(f"{one.title}: every call came to rest with one answer", complete and rested)
            self.answers[one.name] = batch.outcomes

    def again(self, streams: Sequence[Transcript]) -> None:
        """The same streams once more: all is answered from the store."""
        before = self.environment.ledger.count()
        with LiveTable("2. the same streams again: every answer is a replay") as table:
            for one in streams:
                if one.name in self.answers:
                    outcomes = self.environment.client.submit(one.turn(), turn_id=one.turn_id).outcomes
                    _show(table, one, outcomes)
                    same = [_content(outcome) for outcome in outcomes] == [*map(_content, self.answers[one.name])]
                    replayed = all(outcome.replayed for outcome in outcomes)
                    self._claim(f"{one.title}: replayed, the answers are the same", replayed and same)
        after = self.environment.ledger.count()
        self._claim(f"effects in the ledger: {before} before, {after} after", before == after)

    def killed_worker(self, payment: Transcript) -> None:
        """Kill the worker after the effect and before the outcome: nobody knows, so nobody guesses."""
        environment, name = self.environment, (payment.name, 0)
        with LiveTable("3. the worker is killed inside a handler, after its effect") as table:
            batch = self._fed(table, payment)
            assert batch, "our own transcript completes"
            key = batch.outcomes[0].idempotency_key
            environment.wait_until(lambda: environment.ledger.count(key) == 1, "the payment is made")
            table.state(name, "running", "the money is gone, the bank has not answered yet")
            table.state(name, "running", f"SIGKILL to worker {environment.kill_worker()}; another one starts")
            environment.start_another_worker()
            environment.wait_until(lambda: batch.refresh()[0].state is State.UNKNOWN, "the call is found in doubt")
            _show(table, payment, batch.outcomes)
        self._claim("the call is unknown: not called failed or succeeded, not run again", not batch.outcomes[0].settled)
        self._claim("the payment was made once", environment.ledger.count(key) == 1)
        self._resolve(payment, batch.outcomes[0])

    def verdict(self) -> bool:
        """Print every claim with what came of it; True where all are true."""
        counted = self.environment.connection.run(stats(self.environment.connection.space))
        admitted, settled = counted.counts.get("admitted", 0), counted.counts.get("settled", 0)
        sum_ = f"the store's own count: {admitted} admitted = {settled} settled + {counted.open} open"
        self._claim(sum_, counted.balanced and counted.open == 0)
        print("\nwhat had to come true:")
        for claim, came_true in self.claims:
            print(f"  {'ok ' if came_true else 'NOT'} {claim}")
        return all(came_true for _, came_true in self.claims)

    def _fed(self, table: LiveTable, one: Transcript) -> Batch | None:
        turn = _feed(table, one)
        if turn.outcome != "completed":
            return None
        batch = self.environment.client.submit(turn, turn_id=one.turn_id)
        _show(table, one, batch.outcomes)
        return batch

    def _follow(self, table: LiveTable, batches: dict[Transcript, Batch]) -> None:
        def rested() -> bool:
            for one, batch in batches.items():
                _show(table, one, batch.refresh())
            return not any(outcome.pending for batch in batches.values() for outcome in batch.outcomes)

        self.environment.wait_until(rested, "every call comes to rest")

    def _resolve(self, payment: Transcript, doubtful: Outcome) -> None:
        from ..cli import main  # the command line itself, as a person would type it; it imports this module

        why = "it is on the statement"
        words = ["resolve", doubtful.key[:12], "--succeeded", json.dumps(PAID), "--reason", why]
        print(f"\n4. someone reads the bank's statement, and says so\n   $ toolonce {shlex.join(words)}", flush=True)
        code = main([*words, "--redis", self.environment.url])
        (outcome,) = self.environment.client.submit(payment.turn()).outcomes
        told = outcome.state is State.SUCCEEDED and outcome.value == PAID and outcome.replayed
        self._claim("resolve settled it, and a repeat gets this outcome", code == 0 and told)
        self._claim("it is still one payment", self.environment.ledger.count(outcome.idempotency_key) == 1)

    def _claim(self, claim: str, came_true: bool) -> None:
        self.claims.append((claim, came_true))


def _feed(table: LiveTable, one: Transcript) -> TurnResult:
    if one.is_whole:
        return one.turn()
    decoder, rest = TurnDecoder(one.dialect), one.body
    while rest:
        size = 1 + secrets.randbelow(LARGEST_PIECE)
        for draft in decoder.feed(rest[:size]):
            _draw(table, one, draft)
        rest = rest[size:]
        time.sleep(PAUSE_SECONDS)
    turn = decoder.eof()
    for draft in decoder.closing_drafts():
        _draw(table, one, draft)
    return turn


def _draw(table: LiveTable, one: Transcript, draft: Draft) -> None:
    match draft:
        case CallOpened(call, name):
            table.open((one.name, call), one.title, name)
        case ArgumentsDraft(call):
            table.draft((one.name, call), draft.text)
        case CallDropped(call, reason=reason):
            table.state((one.name, call), "dropped", f"not run: {reason}")
        case _:
            pass


def _show(table: LiveTable, one: Transcript, outcomes: Sequence[Outcome]) -> None:
    for outcome in outcomes:
        name = (one.name, outcome.position)
        table.open(name, one.title, outcome.tool)
        words = ("replayed: " if outcome.replayed else "") + outcome_view.answer(outcome)
        table.state(name, outcome.word, words)


def _content(outcome: Outcome) -> tuple[Any, ...]:
    return outcome.key, outcome.state, outcome.value, outcome.failure
