"""Finds the call for a key that a person typed: a call key, an idempotency key, or the first digits of either.

Decides which digits are enough: too few digits, or digits of several calls, are refused.
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
    """The call with this key.

    Raises:
        NotFound: no call has this key.
        Usage: this is not a key, has too few digits, or fits several calls.
    """
    key, _, fingerprint = typed.strip().lower().partition("-")
    if not _KEY.match(key):
        raise Usage(
            f"{typed!r} is not a call key (32 hex digits, or the first of them); `toolonce calls` lists the keys"
        )
    found = connection.run(record(connection.space, key if len(key) == KEY_DIGITS else _complete(connection, key)))
    if found is None:
        raise NotFound(f"no call {key} in {connection.place}; `toolonce calls` lists the calls")
    if not found.idempotency_key.startswith(f"{found.key}-{fingerprint}"):
        raise NotFound(f"call {found.key} has another fingerprint: {found.idempotency_key}")
    return found


def _complete(connection: Connection, digits: str) -> str:
    if len(digits) < FEWEST_DIGITS:
        raise Usage(f"{digits!r} is too short to identify a call: give at least {FEWEST_DIGITS} digits")
    match connection.run(find(connection.space, digits)):
        case (only,):
            return only
        case ():
            raise NotFound(
                f"no call starts with {digits} among the {FIND_MOST} newest and oldest of each state in "
                f"{connection.place}; other calls "
                "need the whole key: logs contain it, and `toolonce calls --json` with --state, --tool, --scope or "
                "--older-than prints it; or try another --namespace"
            )
        case several:
            raise Usage(f"{digits} fits {len(several)} calls; give more digits: {', '.join(several)}")
