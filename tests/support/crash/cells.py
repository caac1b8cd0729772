"""The crash matrix as a table: where a process is, what happens to it there, with what kind of tool it is busy, and
what must then be true of the call once everything has come to rest.

A call is written as its state and the number of its effects: `S1` succeeded, happened once; `U0` unknown, did not
happen; `F0` failed, did not happen. Effects of a mutating tool are counted one by one; those of an idempotent tool by
its idempotency key; of a read it is counted whether it was read. The call behind it in the same lane must have
succeeded, or wait where the first is unknown; but the end of a call brings the one behind, so that a process at
`after_settle` has that one in hand. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from toolonce.store.crashpoints import NAMES
from toolonce.store.model.states import State

KINDS = ("read", "idempotent", "mutating", "begins", "reconcile")
HARNESS_POINTS = ("before_admit", "after_admit_reply_lost")
"""There the process that dies is the one that submits; everywhere else it is a worker."""


class Death(StrEnum):
    """What happens at the point."""

    KILLED = "process killed (SIGKILL)"
    STOPPED = "process stopped past its lease (SIGSTOP, SIGCONT)"
    SERVER_KILLED = "Redis killed and started again"
    UNREACHABLE = "Redis out of reach past the lease"
    REPLIES_LOST = "Redis executes, and its replies are lost"
    MEMORY_FULL = "Redis full, space is made later"


class Cell(NamedTuple):
    """One experiment."""

    point: str
    death: Death
    kind: str

    @property
    def name(self) -> str:
        return f"{self.death.name.lower()}-{self.point}-{self.kind}"


class Rest(NamedTuple):
    """How a call came to rest."""

    state: State
    effects: int

    @property
    def code(self) -> str:
        return f"{self.state[0].upper()}{self.effects}"


# The victim dies, or stops for longer than its lease, and another worker takes over. A stopped one goes on later.
#                       read idempotent mutating begins reconcile
_TABLES = {
    Death.KILLED: """
before_admit             S1  S1  S1  S1  S1
after_admit_reply_lost   S1  S1  S1  S1  S1
after_blmove             S1  S1  S1  S1  S1
after_claim              S1  S1  U0  S1  F0
before_begin             S1  S1  U0  S1  F0
after_effect             S1  S1  U1  U1  S1
before_settle            S1  S1  U1  U1  S1
after_settle             S1  S1  S1  S1  S1
in_renew                 S1  S1  U1  U1  S1
in_recovery              S1  S1  U1  U1  S1
""",
    # after_claim: the one that was stopped sees that it is late, does not enter, and says so. Behind `begin` of a tool
    # that has not declared it, the handler was entered: nobody knows what it did before.
    Death.STOPPED: """
before_admit             S1  S1  S1  S1  S1
after_admit_reply_lost   S1  S1  S1  S1  S1
after_blmove             S1  S1  S1  S1  S1
after_claim              S1  S1  F0  S1  F0
before_begin             S1  S1  U0  S1  F0
after_effect             S1  S1  S1  S1  S1
before_settle            S1  S1  S1  S1  S1
after_settle             S1  S1  S1  S1  S1
in_renew                 S1  S1  S1  S1  S1
in_recovery              S1  S1  U1  U1  S1
""",
    Death.SERVER_KILLED: """
before_admit             S1  S1  S1  S1  S1
after_admit_reply_lost   S1  S1  S1  S1  S1
after_blmove             S1  S1  S1  S1  S1
after_claim              S1  S1  S1  S1  S1
before_begin             S1  S1  S1  S1  S1
after_effect             S1  S1  S1  S1  S1
before_settle            S1  S1  S1  S1  S1
after_settle             S1  S1  S1  S1  S1
in_renew                 S1  S1  S1  S1  S1
in_recovery              S1  S1  U1  U1  S1
""",
    # The victim goes on without a server, and its word arrives late.
    Death.UNREACHABLE: """
before_admit             S1  S1  S1  S1  S1
after_admit_reply_lost   S1  S1  S1  S1  S1
after_blmove             S1  S1  S1  S1  S1
after_claim              S1  S1  S1  S1  S1
before_begin             S1  S1  U0  S1  F0
after_effect             S1  S1  S1  S1  S1
before_settle            S1  S1  S1  S1  S1
after_settle             S1  S1  S1  S1  S1
in_renew                 S1  S1  S1  S1  S1
in_recovery              S1  S1  U1  U1  S1
""",
    Death.REPLIES_LOST: """
before_admit             S1  S1  S1  S1  S1
after_admit_reply_lost   S1  S1  S1  S1  S1
after_blmove             S1  S1  S1  S1  S1
after_claim              S1  S1  S1  S1  S1
before_begin             S1  S1  S1  S1  S1
after_effect             S1  S1  S1  S1  S1
before_settle            S1  S1  S1  S1  S1
after_settle             S1  S1  S1  S1  S1
in_renew                 S1  S1  S1  S1  S1
in_recovery              S1  S1  U1  U1  S1
""",
    # What was admitted goes on: only new calls and reports of progress are refused since there is no memory.
    Death.MEMORY_FULL: """
before_admit             S1  S1  S1  S1  S1
after_admit_reply_lost   S1  S1  S1  S1  S1
after_blmove             S1  S1  S1  S1  S1
after_claim              S1  S1  S1  S1  S1
before_begin             S1  S1  S1  S1  S1
after_effect             S1  S1  S1  S1  S1
before_settle            S1  S1  S1  S1  S1
after_settle             S1  S1  S1  S1  S1
in_renew                 S1  S1  S1  S1  S1
in_recovery              S1  S1  U1  U1  S1
""",
}  # fmt: skip
_STATES = {"S": State.SUCCEEDED, "U": State.UNKNOWN, "F": State.FAILED}


def _read_tables() -> dict[Cell, Rest]:
    found = {}
    for death, text in _TABLES.items():
        for line in text.split("\n"):
            point, *codes = line.split() or ("",)
            for kind, code in zip(KINDS, codes, strict=bool(point)):
                found[Cell(point, death, kind)] = Rest(_STATES[code[0]], int(code[1]))
    return found


EXPECTED = _read_tables()


def state_behind(cell: Cell, first: State) -> State:
    """How the call behind must come to rest: claimed and not entered, it fares as a first one does there."""
    if cell.point == "after_settle":
        return EXPECTED[cell._replace(point="after_claim")].state
    return State.HELD if first is State.UNKNOWN else State.SUCCEEDED


COMMON_POINTS = ("after_blmove", "after_claim", "before_settle")
"""Where every run of the tests tries all deaths; SIGKILL is tried everywhere."""


def cells() -> Iterator[Cell]:
    """All of them, by death and point."""
    return (Cell(point, death, kind) for death in Death for point in NAMES for kind in KINDS)


def is_common(cell: Cell) -> bool:
    """Whether every run of the tests tries it."""
    return cell.death is Death.KILLED or cell.point in COMMON_POINTS
