"""`toolonce recover`: mend now what workers mend by themselves, and accept what a step back of the store has lost."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from typing import TYPE_CHECKING

from ..store.operators import accept_loss
from ..store.reading import stats
from ..store.recovery import Mended, reclaim, repush, tick
from ..store.scripts import Invocation
from ..store.states import State
from . import actor, render, targets
from .errors import Usage
from .listing import server_now
from .settings import open_store
from .stats import queues, read_stats
from .subcommand import add_json, command

if TYPE_CHECKING:
    from ..store.connection import Connection
    from .subcommand import Subparsers

EXAMPLES = """
toolonce recover --dry-run        what is due
toolonce recover                  end expired leases, push lost pointers again, do what time asks for
toolonce recover --accept-loss --reason 'compared with the billing system'
"""
SWEEPER = "toolonce recover"
GRACE_MS = 1_000
"""Between the two looks that find a lost pointer: a live worker claims within a few ms of taking it."""
GRACE_SLACK_S = 0.05


def add_parser(subparsers: Subparsers) -> None:
    parser = command(subparsers, "recover", "Mend what died: leases, pointers, deadlines", examples=EXAMPLES)
    parser.add_argument(
        "--accept-loss", action="store_true", help="the store was restored or failed over: let mutating calls run again"
    )
    parser.add_argument("--dry-run", action="store_true", help="say what is due, and do nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask; needed where nobody can be asked")
    actor.add_options(parser)
    add_json(parser, "what was found or mended, each as NAME: COUNT")


def run(args: argparse.Namespace) -> int:
    with open_store(args) as connection:
        if args.dry_run:
            counts = due(connection)
        elif args.accept_loss:
            counts = _accept(args, connection)
        else:
            counts = sweep(connection)
    if args.json:
        render.show_json(counts)
    else:
        render.show_pairs({name.replace("_", " "): number for name, number in counts.items()})
    return 0


def due(connection: Connection) -> dict[str, int]:
    """What a sweep would find. Reads only."""
    now, root = server_now(connection), connection.space.root
    found = {name: int(connection.command("ZCOUNT", f"{root}{name}", "-inf", now)) for name in _TIMED}
    counted = read_stats(connection)
    return {
        "leases_run_out": found["leases"],
        "delayed_calls_due": found["delayed"],
        "deadlines_passed": found["deadlines"],
        "approvals_passed": found["approvals"],
        "store_went_back": int("went_back" in counted.flags),
    }


_TIMED = ("leases", "delayed", "deadlines", "approvals")


def sweep(connection: Connection) -> dict[str, int]:
    """Mend everything that is due, in bounded steps; safe beside any number of workers."""
    space, counts = connection.space, Counter[str]()
    _exhaust(connection, counts, reclaim(space, SWEEPER))
    while (mended := connection.run(tick(space))[0]).more:
        counts.update(mended.counts)
    counts.update(mended.counts)
    names = queues(connection)
    for name in names:
        _exhaust(connection, counts, repush(space, name, grace_ms=GRACE_MS))
    if connection.run(stats(space)).stored[State.QUEUED]:
        time.sleep(GRACE_MS / 1000 + GRACE_SLACK_S)
        for name in names:
            _exhaust(connection, counts, repush(space, name, grace_ms=GRACE_MS))
    return dict(counts)


def _exhaust(connection: Connection, counts: Counter[str], step: Invocation[Mended]) -> None:
    while (mended := connection.run(step)).more:
        counts.update(mended.counts)
    counts.update(mended.counts)


def _accept(args: argparse.Namespace, connection: Connection) -> dict[str, int]:
    if not args.reason.strip():
        raise Usage("--accept-loss needs --reason: what was compared with what before calls may run again")
    targets.confirm(
        args, "calls whose records were lost may run a second time; have you compared with the systems behind?"
    )
    word, freed, stood = actor.word_of(args), 0, False
    while True:
        flag, now_freed, left = connection.run(accept_loss(connection.space, word))
        stood, freed = stood or flag, freed + now_freed
        if not left:
            return {"store_went_back": int(stood), "calls_freed": freed}
