"""What identifies a call: call key, fingerprint, idempotency key. Pure, versioned, and the same forever.

The call key says *which* request of the model this is; the fingerprint says *what* it asks for. Together they are the
idempotency key. Schema-free: arguments count as decoded, before defaults, coercion and masking. Nothing here is
recomputed for a stored record.

Digests are SHA-256, keyed ones HMAC-SHA-256, cut to 128 bits: both exist in every language's standard library, and
128 bits keep the pair inside the 300 characters that RQ allows for a job id.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from json.encoder import encode_basestring_ascii as quoted
from typing import Any

VERSION = "1"
_HEX = 32
_WORDS = {None: "null", True: "true", False: "false"}


def digest(*parts: str | bytes, key: bytes | None = None) -> str:
    """128 bits in hex over parts that cannot run into each other: each is preceded by its length in bytes."""
    return _hash(_framed(*parts), key)


def _framed(*parts: str | bytes) -> bytes:
    data = bytearray()
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        data += len(raw).to_bytes(8, "big") + raw
    return bytes(data)


_cached = lru_cache(maxsize=256)(_framed)
_CACHED_LENGTH = 200


def _same(*parts: str) -> bytes:
    """The same for parts that come again and again; never for arguments. Long ones, which a model made up, are not
    kept."""
    return _cached(*parts) if len(parts[-1]) <= _CACHED_LENGTH else _framed(*parts)


def _hash(data: bytes, key: bytes | None = None) -> str:
    if key is not None:
        return hmac.digest(key, data, "sha256").hex()[:_HEX]
    return hashlib.sha256(data).hexdigest()[:_HEX]


def reference(call_id: str | None, occurrence: int) -> str:
    """The call's place in its turn: the provider's id and its occurrence among equal ids; a missing id is one id."""
    return f"{'-' if call_id is None else '+'}{call_id or ''}\n{occurrence}"


def references(call_ids: Iterable[str | None], first: int = 1) -> list[str]:
    """References of all calls of a turn, in call order; `first` is the occurrence of each id that comes first."""
    seen: dict[str | None, int] = {}
    out = []
    for call_id in call_ids:
        seen[call_id] = seen.get(call_id, first - 1) + 1
        out.append(reference(call_id, seen[call_id]))
    return out


def call_key(namespace: str, scope: str, turn_id: str, ref: str) -> str:
    """The key of a call that is known by its turn."""
    return _hash(_same(VERSION, namespace, "turn", scope) + _framed(turn_id, ref))


def intent_call_key(namespace: str, scope: str, intent: str) -> str:
    """The key of a call that the harness knows by an intent of its own, whatever turn asks for it."""
    return digest(VERSION, namespace, "intent", scope, intent)


def turn_key(namespace: str, scope: str, turn_id: str) -> str:
    """The key under which a turn lists its calls."""
    return _hash(_same(VERSION, namespace, "batch", scope) + _framed(turn_id))


def fingerprint(tool: str, arguments: Any, key: bytes | None = None) -> str:
    """What is asked for: tool and arguments. Keyed where a keyring is configured, so that short secrets in
    arguments cannot be guessed from it."""
    return _hash(_same(VERSION, tool) + _framed(canonical(arguments)), key)


def raw_fingerprint(tool: str, text: str, key: bytes | None = None) -> str:
    """The fingerprint of a call whose argument text is not a JSON object: over the text as it came."""
    return digest(VERSION, tool, "raw", text, key=key)


def idempotency_key(call: str, print_: str) -> str:
    """What handlers forward downstream; also the RQ job id."""
    return f"{call}-{print_}"


def canonical(value: Any) -> str:
    """JSON in one form: members in the order of RFC 8785 (UTF-16 code units), no blanks, integers exact at any size.

    An integral float equals its integer (``1.0`` is ``1``, ``-0.0`` is ``0``); other floats are the shortest text
    that reads back equal. ``True`` is never ``1``, text is never a number. No Unicode normalisation.

    Raises:
        TypeError: a value that JSON does not know.
        ValueError: NaN or an infinity.
    """
    match value:
        case None | bool():
            return _WORDS[value]
        case str():
            return quoted(value)
        case int():
            return _integer(value)
        case float():
            return _float(value)
        case dict() | Mapping():
            return _members(value)
        case list() | tuple():
            return f"[{','.join(map(canonical, value))}]"
        case _:
            raise TypeError(f"{type(value).__name__} is not JSON")


def _members(value: Mapping[Any, Any]) -> str:
    try:
        # The same order as by code units, and quicker, for all names but the rarest.
        ordered = sorted(value) if "".join(value).isascii() else sorted(value, key=_code_units)
    except TypeError as error:
        raise TypeError("a JSON object has text as its member names") from error
    return f"{{{','.join([f'{quoted(name)}:{canonical(value[name])}' for name in ordered])}}}"


def _code_units(name: str) -> bytes:
    return name.encode("utf-16-be", "surrogatepass")


def _float(value: float) -> str:
    if not math.isfinite(value):
        raise ValueError("NaN and infinities are not JSON")
    return _integer(int(value)) if value.is_integer() else repr(value)


def _integer(value: int) -> str:
    # int -> str is limited to 4300 digits in CPython; hexadecimal is not, and a number this size has no other form.
    return str(value) if value.bit_length() < 14_000 else f"0x{value:x}"
