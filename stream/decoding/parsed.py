"""What a vendor's own library has parsed already, back as the JSON it came from: its events and its whole responses.

Decides nothing about a turn. Knows no library: a parsed value is a mapping, or an object with ``model_dump_json``.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from ..turns.errors import StreamMisuse
from ..wire.frames import ProviderError


def json_of(parsed: Any) -> bytes:
    """The JSON; bytes in it are base64, as on the wire.

    Raises:
        StreamMisuse: it is nothing that a library parses.
    """
    dump = getattr(parsed, "model_dump_json", None)
    if callable(dump):
        return str(dump(exclude_unset=True, by_alias=True)).encode("utf-8", "replace")
    if not isinstance(parsed, Mapping):
        raise StreamMisuse(f"a parsed event or response is a mapping or a model, not {type(parsed).__name__}")
    try:
        return json.dumps(dict(parsed), default=_plain).encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise StreamMisuse(f"this cannot be written as JSON: {error}") from error


def named_event(parsed: Any) -> tuple[bytes, bytes]:
    """Name and JSON of an event whose name stands outside of it: ``{"messageStop": {...}}``.

    Raises:
        StreamMisuse: it is something else.
    """
    if not isinstance(parsed, Mapping) or len(parsed) != 1:
        raise StreamMisuse("a parsed event of this dialect is a mapping of its name to what it holds")
    ((name, told),) = parsed.items()
    return (b"error" if str(name).endswith("Exception") else str(name).encode("utf-8", "replace")), json_of(told)


def raised_error(cause: object) -> ProviderError | None:
    """The provider's error inside an exception of boto3, which raises what the stream reports; None in any other."""
    response = getattr(cause, "response", None)
    error = response.get("Error") if isinstance(cause, Exception) and isinstance(response, dict) else None
    if not isinstance(error, dict):
        return None
    return ProviderError(*(str(error[name]) if error.get(name) else None for name in ("Code", "Message")))


def _plain(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, (bytes, bytearray)) else str(value)
