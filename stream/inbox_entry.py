"""The wire format of an inbox entry: stream fields to calls. Pure.

scope    the conversation within the tenant; with `turn` it identifies
turn     the harness's own step id, the same on every repeat
calls    JSON list of {"name", "arguments", "id"?, "kind"?}; or, in its place,
body     the provider's bytes, with `dialect`; `streamed` is 0 for a response that was not streamed
ordered  1: the calls of this turn run strictly one after the other
intent   JSON object: position -> key of the harness's own
sealed   1: `calls` or `body` is a token made with the installation's keyring
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from ..store.errors import KeyringMissing, TurnIdMissing
from ..store.keyring import Keyring
from .judging import Asked
from .submission import calls_from_json, usable_turn_id

KNOWN = frozenset({b"scope", b"turn", b"calls", b"body", b"dialect", b"streamed", b"ordered", b"intent", b"sealed"})


class Unreadable(ValueError):
    """The entry cannot be read; one line says why."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One readable entry."""

    scope: str
    turn_id: str
    calls: tuple[Asked, ...]
    intent: dict[int, str]
    ordered: bool
    sealed: bool


def read_entry(fields: Mapping[bytes, bytes], keyring: Keyring) -> Entry:
    """Read an entry's fields.

    Raises:
        Unreadable: something is missing, unknown or of the wrong shape.
    """
    strange = sorted(name.decode("utf-8", "replace") for name in fields.keys() - KNOWN)
    if strange:
        raise Unreadable(f"unknown field {strange[0]!r}; known: {', '.join(sorted(k.decode() for k in KNOWN))}")
    try:
        calls = calls_from_json(_opened(fields, b"calls", keyring))
        turn_id = usable_turn_id(_text(fields, b"turn"), None)
        return Entry(
            scope=_text(fields, b"scope"),
            turn_id=turn_id,
            calls=tuple(calls),
            intent=_intent(_text(fields, b"intent")),
            ordered=_flag(fields, b"ordered"),
            sealed=_flag(fields, b"sealed"),
        )
    except TurnIdMissing as error:
        raise Unreadable("field 'turn' is missing: your own step id, the same on every repeat") from error
    except KeyringMissing as error:
        raise Unreadable(str(error)) from error
    except Unreadable:
        raise
    except ValueError as error:
        raise Unreadable(str(error)) from error


def _opened(fields: Mapping[bytes, bytes], name: bytes, keyring: Keyring) -> str:
    if name not in fields:
        raise Unreadable(f"field {name.decode()!r} is missing")
    text = _text(fields, name)
    return keyring.decrypt(text) if _flag(fields, b"sealed") else text


def _text(fields: Mapping[bytes, bytes], name: bytes) -> str:
    try:
        return fields.get(name, b"").decode()
    except UnicodeDecodeError as error:
        raise Unreadable(f"field {name.decode()!r} is not UTF-8") from error


def _flag(fields: Mapping[bytes, bytes], name: bytes) -> bool:
    value = fields.get(name, b"0")
    if value not in (b"0", b"1"):
        raise Unreadable(f"field {name.decode()!r}: expected 0 or 1")
    return value == b"1"


def _intent(text: str) -> dict[int, str]:
    if not text:
        return {}
    stored = json.loads(text)
    if not isinstance(stored, dict) or not all(isinstance(key, str) for key in stored.values()):
        raise Unreadable("field 'intent': expected an object of position to key")
    return {int(position): key for position, key in stored.items()}
