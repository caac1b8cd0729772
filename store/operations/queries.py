"""Queries of what is stored: one whole call, a turn, a page of a state, the counters. Reads only, each at bounded
cost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from ..model.errors import CorruptRecord
from ..model.identity import idempotency_key
from ..model.implied import implied_history, with_implied
from ..model.keys import Namespace
from ..model.outcomes import Failure, Outcome
from ..model.record import PAGE_FIELDS, RecordFields
from ..model.states import OPEN, State
from .operation import Invocation, invocation, number, text
from .outcome_codec import read_failure, read_outcome
from .script_arguments import Each, arguments_of

RECORD_VERSIONS = ("1",)
FIND_MOST = 500
"""Calls of a state that `find` looks at, from each end: a few ms of Redis time, however large the store is."""


@dataclass(frozen=True, slots=True)
class Record:
    """All that is stored about a call. Times are ms of Redis time.

    Attributes:
        fields: what is stored, typed.
        history: events, oldest first: at, op, from, to, actor, fence, attempt, reason, ...
        evidence: outcomes that came too late to count.
        lease_left_ms: None unless a lease is held.
        read_at: when this was read.
        waits_for: of a held call, key and state of the one that it waits for, where it is one.
    """

    key: str
    state: State
    fields: RecordFields
    history: tuple[dict[str, Any], ...]
    evidence: tuple[dict[str, Any], ...]
    lease_left_ms: int | None
    read_at: int
    waits_for: tuple[str, str] | None = None

    @property
    def idempotency_key(self) -> str:
        return idempotency_key(self.key, self.fields.fp)

    @property
    def fence(self) -> int:
        return self.fields.fence

    @property
    def failure(self) -> Failure | None:
        return read_failure(self.fields.error)


@dataclass(frozen=True, slots=True)
class PageRow:
    """One line of a page. `entered_us`: when it entered the state, microseconds of Redis time; calls of one turn that
    were admitted in one step have theirs in call order. `waits_for`: of a held call, key and state of the one that it
    waits for, where it is one."""

    key: str
    state: State
    entered_us: int
    fields: RecordFields
    waits_for: tuple[str, str] | None = None

    @property
    def entered_at(self) -> int:
        """The same in ms."""
        return self.entered_us // 1000


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the calls in one state; `total` counts the whole range, `rows` is what was asked for."""

    read_at: int
    total: int
    rows: tuple[PageRow, ...]


@dataclass(frozen=True, slots=True)
class Stats:
    """Counters and sizes, all of one moment.

    Attributes:
        counts: ``admitted``, ``settled``, ``state:<state>``, ``tool:<state>:<tool>``; settled ones count forever.
            ``?`` stands for all tools that were never published.
        stored: calls in each state that are stored with their body.
        oldest_at: when the oldest call of a state entered it (ms), 0 for none.
        queues: queue -> (waiting, taken and not yet claimed).
    """

    read_at: int
    counts: dict[str, int]
    stored: dict[State, int]
    oldest_at: dict[State, int]
    queues: dict[str, tuple[int, int]]
    flags: dict[str, str]
    fence: int
    delayed: int

    @property
    def open(self) -> int:
        return sum(self.counts.get(f"state:{state}", 0) for state in OPEN)

    @property
    def balanced(self) -> bool:
        """G2: admitted = settled + open."""
        return self.counts.get("admitted", 0) == self.counts.get("settled", 0) + self.open


@arguments_of("record")
class RecordArgs(NamedTuple):
    call: str


@arguments_of("turn")
class TurnArgs(NamedTuple):
    turn_key: str


@arguments_of("page")
class PageArgs(NamedTuple):
    state: str
    order: Literal["new", "old"]
    after: str
    before: str
    offset: int
    most: int


@arguments_of("find")
class FindArgs(NamedTuple):
    prefix: str
    most: int


@arguments_of("stats")
class StatsArgs(NamedTuple):
    queues: Each[str]


def record(space: Namespace, call: str) -> Invocation[Record | None]:
    """One call, whole; None where there is no such call.

    Raises (when run):
        CorruptRecord: written by a release that this one does not know.
    """

    def read(reply: list[Any]) -> Record | None:
        stored = _mapping(reply[0])
        if not stored:
            return None
        fields = with_implied(stored)
        if fields.v not in RECORD_VERSIONS:
            raise CorruptRecord(f"call {call} has record version {fields.v or None!r}; upgrade toolonce here")
        lease = int(reply[3])
        return Record(
            key=call,
            state=State(fields.state),
            fields=fields,
            history=tuple(json.loads(line) for line in reply[1]) or tuple(implied_history(fields)),
            evidence=tuple(json.loads(line) for line in reply[2]),
            lease_left_ms=None if lease < 0 and fields.state != State.RUNNING else lease,
            read_at=int(reply[4]),
            waits_for=_waits_for(reply[5], reply[6]),
        )

    return invocation(space.root, RecordArgs(call=call), read)


def turn(space: Namespace, turn_key: str) -> Invocation[tuple[Outcome, ...]]:
    """The calls of a turn with what is known of each, in call order; empty where nothing was admitted.

    The reason of a queued call is ``paused`` where its tool, tenant or queue is, whether it is parked yet or not. Where
    the turn came in several submissions that count from 0 each, the order is that of the submissions, and the
    positions are places in it.
    """

    def read(reply: list[Any]) -> tuple[Outcome, ...]:
        found = [
            (_moment(place), _with_pause(read_outcome(key.decode(), answer), paused == 1))
            for key, place, answer, paused in reply
        ]
        if len({outcome.position for _, outcome in found}) == len(found):
            return tuple(sorted((outcome for _, outcome in found), key=lambda outcome: outcome.position))
        found.sort(key=lambda one: (one[0], one[1].position))
        return tuple([replace(outcome, position=place) for place, (_, outcome) in enumerate(found)])

    return invocation(space.root, TurnArgs(turn_key=turn_key), read)


def _with_pause(outcome: Outcome, is_paused: bool) -> Outcome:
    return replace(outcome, marks={**outcome.marks, "reason": "paused"}) if is_paused else outcome


def _moment(place: bytes) -> int:
    """When the submission of a call came, in microseconds."""
    return int(place.partition(b" ")[0])


@dataclass(frozen=True, slots=True)
class Span:
    """Which calls of a state a page shows: those that entered it in [after_us, before_us], microseconds of Redis
    time, None for no bound."""

    newest_first: bool = True
    after_us: int | None = None
    before_us: int | None = None
    offset: int = 0
    most: int = 50


def page(space: Namespace, state: State, span: Span = Span()) -> Invocation[Page]:
    """One page of the calls in a state, by the time they entered it."""
    after = "-inf" if span.after_us is None else _score(span.after_us)
    before = "+inf" if span.before_us is None else _score(span.before_us)
    order: Literal["new", "old"] = "new" if span.newest_first else "old"
    args = PageArgs(state=state, order=order, after=after, before=before, offset=span.offset, most=span.most)

    def read(reply: list[Any]) -> Page:
        return Page(int(reply[0]), int(reply[1]), tuple(_row(state, line) for line in reply[2:]))

    return invocation(space.root, args, read)


def _score(micros: int) -> str:
    """As the index has it: ms with three decimals."""
    return f"{micros // 1000}.{micros % 1000:03d}"


def find(space: Namespace, prefix: str, *, most: int = FIND_MOST) -> Invocation[tuple[str, ...]]:
    """Call keys that start with these hex digits, at most ten, among the `most` newest and oldest of each state."""
    args = FindArgs(prefix=prefix, most=most)
    return invocation(space.root, args, lambda reply: tuple(key.decode() for key in reply))


def _row(state: State, line: list[Any]) -> PageRow:
    key, entered, values, ahead, ahead_state = line
    found = {name: text(value) or "" for name, value in zip(PAGE_FIELDS, values, strict=True) if value is not None}
    return PageRow(key.decode(), state, int(entered), RecordFields(found), _waits_for(ahead, ahead_state))


def _waits_for(ahead: bytes | None, ahead_state: bytes | None) -> tuple[str, str] | None:
    return (ahead.decode(), text(ahead_state) or "gone") if ahead else None


def stats(space: Namespace, queues: Sequence[str] = ("default",)) -> Invocation[Stats]:
    """Counters, ages and queue lengths at constant cost."""

    def read(reply: list[Any]) -> Stats:
        states = [(State(s.decode()), int(n), int(at)) for s, n, at in _chunks(reply[2], 3)]
        return Stats(
            read_at=int(reply[0]),
            counts=_with_sums({name: int(value) for name, value in _mapping(reply[1]).items()}),
            stored={state: size for state, size, _ in states},
            oldest_at={state: at for state, _, at in states},
            queues={queue.decode(): (int(n), int(taken)) for queue, n, taken in _chunks(reply[3], 3)},
            flags=_mapping(reply[4]),
            fence=number(reply[5]),
            delayed=int(reply[6]),
        )

    return invocation(space.root, StatsArgs(queues=queues), read)


def _with_sums(counts: dict[str, int]) -> dict[str, int]:
    """Counters are kept per tool and state; those per state, and of all that is settled, are their sums."""
    sums = {"settled": 0, **{f"state:{state}": 0 for state in State}}
    for name, value in counts.items():
        if name.startswith("tool:"):
            state = State(name.split(":")[1])
            sums[f"state:{state}"] += value
            sums["settled"] += value if state.is_settled else 0
    return counts | sums


def _mapping(flat: list[bytes]) -> dict[str, str]:
    return {name.decode(): value.decode("utf-8", "replace") for name, value in _chunks(flat, 2)}


def _chunks(flat: list[Any], size: int) -> list[list[Any]]:
    return [flat[i : i + size] for i in range(0, len(flat), size)]
