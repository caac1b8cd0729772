"""The wire format of an inbox entry: parses stream fields into calls. Pure. PROTOCOL.md documents it.

scope    the conversation within the tenant; with `turn` it identifies
turn     the harness's own step id, the same on every repeat; not needed with a `body` that has a turn id
calls    JSON list of {"name", "arguments", "id"?, "kind"?}; or else
body     the provider's bytes, with `dialect`; `streamed` is 0 for a response that was not streamed,
         `max_tokens` is the limit of output tokens of its request, `trust_done` is 1 where the server sends no
         finish reason
ordered  1: the calls of this turn run strictly one after the other
intent   JSON object: position -> intent key of the harness
sealed   1: `calls` or `body` is a token made with the tenant's entry key
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from ...store.model.errors import KeyringMissing, TurnIdMissing
from ...store.model.keyring import Keyring
from ..decoding.decoder import TurnDecoder
from ..decoding.whole_body import decode_body
from ..dialects.table import spec_of
from ..harness.admission_rules import RequestedCall
from ..harness.calls_json import calls_from_json
from ..harness.submission import asked_of, usable_turn_id
from ..turns.errors import StreamError
from ..turns.turn import TurnResult

ENTRY_BYTES = 32 << 20
"""Most bytes of all fields together: the size of a streamed response of 100,000 tokens, with some 300 bytes per event.
Sealed and with JSON escapes it is still far below the 512 MB at which a server closes the connection."""
KNOWN = frozenset(b"scope turn calls body dialect streamed max_tokens trust_done ordered intent sealed".split())
Fields = Mapping[bytes, bytes]
_Open = Callable[[str], bytes]
_POSITION = re.compile("0|[1-9][0-9]{0,8}")
_TOKENS = re.compile("[1-9][0-9]{0,11}")


class Unreadable(ValueError):
    """The entry cannot be read; the text says why in one line."""


@dataclass(frozen=True, slots=True)
class ReadEntry:
    """The content of a readable entry."""

    scope: str
    turn_id: str
    calls: tuple[RequestedCall, ...]
    intent: dict[int, str]
    ordered: bool
    sealed: bool


def read_entry(fields: Fields | None, keyring: Keyring, tenant: str, *, size: int = 0) -> ReadEntry:
    """Parse the fields of a tenant's entry; None stands for an entry of `size` bytes that is too large to be read.

    Raises:
        Unreadable: a field is missing, unknown or of the wrong form, or the turn did not complete.
    """
    if fields is None:
        raise Unreadable(f"the entry has {size:,} bytes; at most {ENTRY_BYTES:,} are read")
    try:
        return _read(fields, partial(keyring.open_entry, tenant=tenant))
    except TurnIdMissing as error:
        raise Unreadable(
            f"field 'turn' is missing: add your own step id, the same on every repeat ({error})"
        ) from error
    except Unreadable:
        raise
    except (KeyringMissing, StreamError, ValueError) as error:
        raise Unreadable(str(error)) from error


def _read(fields: Fields, open_: _Open) -> ReadEntry:
    if strange := sorted(name.decode("utf-8", "replace") for name in fields.keys() - KNOWN):
        raise Unreadable(f"unknown field {strange[0]!r}; known: {', '.join(sorted(k.decode() for k in KNOWN))}")
    if (b"calls" in fields) == (b"body" in fields):
        raise Unreadable("exactly one of the fields 'calls' and 'body' is needed")
    if b"calls" in fields and b"max_tokens" in fields:
        raise Unreadable("field 'max_tokens' is allowed with 'body' only: it is the limit of its request")
    if b"calls" in fields:
        calls, came = calls_from_json(_opened(fields, b"calls", open_).decode()), None
    else:
        result = _decoded(fields, _opened(fields, b"body", open_))
        calls, came = asked_of(result), result.turn_id
    return ReadEntry(
        scope=_text(fields, b"scope"),
        turn_id=usable_turn_id(_text(fields, b"turn"), came),
        calls=tuple(calls),
        intent=_intent(_text(fields, b"intent")),
        ordered=_flag(fields, b"ordered"),
        sealed=_flag(fields, b"sealed"),
    )


def _decoded(fields: Fields, body: bytes) -> TurnResult:
    dialect = spec_of(_text(fields, b"dialect")).name
    most = _tokens(fields)
    if not _flag(fields, b"streamed", b"1"):
        return decode_body(body, dialect, max_tokens=most)
    decoder = TurnDecoder(dialect, max_tokens=most, trust_done=_flag(fields, b"trust_done"))
    decoder.feed(body)
    return decoder.eof()


def _tokens(fields: Fields) -> int | None:
    if b"max_tokens" not in fields:
        return None
    text = _text(fields, b"max_tokens")
    if not _TOKENS.fullmatch(text):
        raise Unreadable("field 'max_tokens': expected an integer, 1 or more")
    return int(text)


def _opened(fields: Fields, name: bytes, open_: _Open) -> bytes:
    return open_(_text(fields, name)) if _flag(fields, b"sealed") else fields[name]


def _text(fields: Fields, name: bytes) -> str:
    try:
        return fields.get(name, b"").decode()
    except UnicodeDecodeError as error:
        raise Unreadable(f"field {name.decode()!r} is not UTF-8") from error


def _flag(fields: Fields, name: bytes, default: bytes = b"0") -> bool:
    value = fields.get(name, default)
    if value not in (b"0", b"1"):
        raise Unreadable(f"field {name.decode()!r}: expected 0 or 1")
    return value == b"1"


def _intent(text: str) -> dict[int, str]:
    if not text:
        return {}
    stored = json.loads(text)
    if not isinstance(stored, dict) or not all(map(_POSITION.fullmatch, stored)):
        raise Unreadable("field 'intent': expected an object that maps position to key")
    return {int(position): key for position, key in stored.items()}
