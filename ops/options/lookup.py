"""From what a person typed to one call: a whole key, an idempotency key, or the first digits of either.

Never guesses: digits that fit several calls, or too few of them, are refused.
"""

from __future__ import annotations

import re

from ...store.connections.connection import Connection
from ...store.operations.queries import FIND_MOST, Record, find, record
from ..errors import NotFound, Usage

_KEY = re.compile(r"[0-9a-f]{1,32}\Z")
KEY_DIGITS = 32
FEWEST_DIGITS = 6


def get_record(connection: Connection, typed: str) -> Record:
    """The call that was meant.

    Raises:
        NotFound: no call has this key.
        Usage: these digits are no key, are too few, or fit several calls.
    """
    key, _, fingerprint = typed.strip().lower().partition("-")
    if not _KEY.match(key):
        raise Usage(f"{typed!r} is no call key: 32 hex digits, or the first ones of it; `toolonce calls` lists them")
    found = connection.run(record(connection.space, key if len(key) == KEY_DIGITS else _complete(connection, key)))
    if found is None:
        raise NotFound(f"no call {key} in {connection.place}; `toolonce calls` lists those there are")
    if not found.fields.ikey.startswith(f"{found.key}-{fingerprint}"):
        raise NotFound(f"call {found.key} has another fingerprint: {found.fields.ikey}")
    return found


def _complete(connection: Connection, digits: str) -> str:
    if len(digits) < FEWEST_DIGITS:
        raise Usage(f"{digits!r} is too short to name a call safely: give at least {FEWEST_DIGITS} digits")
    match connection.run(find(connection.space, digits)):
        case (only,):
            return only
        case ():
            raise NotFound(
                f"no call starts with {digits} among the {FIND_MOST} newest and oldest of each state in "
                f"{connection.place}; others are found "
                "by the whole key only: logs hold it, and `toolonce calls --json` with --state, --tool, --scope or "
                "--older-than; or look in another --namespace"
            )
        case several:
            raise Usage(f"{digits} fits {len(several)} calls; give more digits: {', '.join(several)}")
