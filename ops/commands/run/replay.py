"""`toolonce replay`: shows how repeats of turns or stored calls would be answered. Executes nothing and only reads."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ....store.model.errors import KeyringMissing
from ....store.model.keyring import Keyring
from ....store.model.sealing import Sealer
from ....store.model.states import State
from ....store.operations.admission import Identified, lookup
from ....stream.harness.submission import SubmissionTerms, asked_of, identified, usable_turn_id
from ...errors import Usage
from ...exit_codes import ExitCode
from ...options import selection
from ...options.inputs import add_response_options, read_bytes, turn_of
from ...options.parser import add_json, command
from ...options.settings import open_store
from ...views import outcome_view, render
from ...views.render import SHOWN_DIGITS

if TYPE_CHECKING:
    from ....store.connections.connection import Connection
    from ....store.model.outcomes import Outcome
    from ....store.operations.queries import Record
    from ....stream.turns.turn import TurnResult
    from ...options.parser import Subparsers

EXAMPLES = """
toolonce replay --turn turn.sse --scope tenant-1/chat-42      would a repeat of this turn run anything?
toolonce replay --state succeeded --since 1d                  are stored calls still found by their arguments?
toolonce replay 3f9a2c41d07b
"""
STEP = 100
"""Calls read in one round trip."""


@dataclass(frozen=True, slots=True)
class ReplayAnswer:
    """How a repeat of one call would be answered: ``replay``, ``open``, ``conflict`` or ``new``."""

    word: str
    key: str
    tool: str
    outcome: Outcome | None

    def as_json(self) -> dict[str, Any]:
        shown = outcome_view.as_json(self.outcome) if self.outcome else {"call": self.key, "name": self.tool}
        return {"answer": self.word, **shown}


def add_parser(subparsers: Subparsers) -> None:
    parser = command(subparsers, "replay", "Show how repeats would be answered; executes nothing", examples=EXAMPLES)
    selection.add_choice(parser)
    group = parser.add_argument_group("recorded turns")
    group.add_argument("--turn", action="append", default=[], metavar="FILE", help="a recorded stream or response")
    add_response_options(group)
    group.add_argument("--turn-id", metavar="ID", help="the turn id of the submission, if it was your own")
    add_json(parser, "{answers: [{answer, call, name, ...}]}, where answer is replay, open, conflict or new")


def run(args: argparse.Namespace) -> int:
    if args.turn and (args.keys or not args.scope):
        raise Usage("--turn needs --scope, the one of the submission, and takes no call keys")
    turns = [turn_of(args, read_bytes(path)) for path in args.turn]
    with open_store(args) as connection:
        answers = _turns(args, connection, turns) if turns else _stored(args, connection)
    if args.json:
        render.show_json({"answers": [answer.as_json() for answer in answers]})
    else:
        _show(answers, connection.place)
    return ExitCode.DONE if all(answer.word == "replay" for answer in answers) else ExitCode.ENDED_BADLY


def _turns(args: argparse.Namespace, connection: Connection, turns: list[TurnResult]) -> list[ReplayAnswer]:
    terms = SubmissionTerms(connection.space, args.scope, keyring=Keyring.from_environment())
    answers: list[ReplayAnswer] = []
    for turn in turns:
        calls = asked_of(turn)
        found = identified(terms, usable_turn_id(args.turn_id, turn.turn_id), calls)
        answers += _asked(connection, [(call.tool, identity) for call, identity in zip(calls, found, strict=True)])
    return answers


def _stored(args: argparse.Namespace, connection: Connection) -> list[ReplayAnswer]:
    """Look up each call again by its stored arguments, with the current keys."""
    keyring, answers = Keyring.from_environment(), []
    batch: list[tuple[str, Identified]] = []
    for call in selection.records(args, connection, tuple(State)):
        batch.append((call.fields.tool, _identity(call, keyring)))
        if len(batch) == STEP:
            answers += _asked(connection, batch)
            batch = []
    return [*answers, *_asked(connection, batch)]


def _identity(call: Record, keyring: Keyring) -> Identified:
    fields = call.fields
    if fields.forgotten:
        return Identified(call.key, (fields.fp,))  # without arguments there is no new fingerprint
    arguments, tool = json.loads(fields.args or "{}"), fields.tool
    if fields.secret:
        if fields.kid not in keyring.ids:
            raise KeyringMissing(f"call {call.key} has secret fields under a key that is not in TOOLONCE_KEYS")
        sealer = Sealer(keyring, fields.tenant, tool)
        arguments, _ = sealer.open_arguments(arguments, (), as_came=True)
    if isinstance(arguments, dict) and "$rejected" in arguments:
        return Identified(call.key, keyring.raw_fingerprints(tool, arguments["$rejected"]))
    if fields.kind == "custom":
        arguments = arguments["input"]
    return Identified(call.key, keyring.fingerprints(tool, arguments))


def _asked(connection: Connection, calls: list[tuple[str, Identified]]) -> list[ReplayAnswer]:
    if not calls:
        return []
    known = connection.run(lookup(connection.space, [identity for _, identity in calls]))
    return [
        ReplayAnswer(_word(outcome), identity.key, tool, outcome)
        for (tool, identity), outcome in zip(calls, known, strict=True)
    ]


def _word(outcome: Outcome | None) -> str:
    if outcome is None:
        return "new"
    if outcome.conflict:
        return "conflict"
    return "replay" if outcome.settled else "open"


def _show(answers: list[ReplayAnswer], place: str) -> None:
    meanings = {"new": "would run", "open": "is open or unknown: the repeat would wait for it"}
    rows = [
        (
            answer.key[:SHOWN_DIGITS],
            answer.tool,
            answer.word,
            render.state(answer.outcome.word) if answer.outcome else "",
            meanings.get(answer.word) or (outcome_view.answer(answer.outcome) if answer.outcome else ""),
        )
        for answer in answers
    ]
    render.show_table(("call", "tool", "a repeat is", "state", "answer"), rows)
    counted = Counter(answer.word for answer in answers)
    render.say(", ".join(f"{number} {word}" for word, number in sorted(counted.items())) or f"no calls in {place}")
