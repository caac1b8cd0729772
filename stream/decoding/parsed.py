"""Turns events and responses that a vendor's SDK has parsed back into JSON.

Decides nothing about a turn. Must not know any SDK: a parsed value is a mapping, or has ``model_dump_json``.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from ..turns.errors import StreamMisuse
from ..wire.frames import ProviderError, error_in


def json_of(parsed: Any) -> bytes:
    """The JSON of a parsed value; bytes in it become base64, as on the wire.

    Raises:
        StreamMisuse: it is neither a mapping nor a model, or cannot be written as JSON.
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
    """Name and JSON of an event that is wrapped in its name: ``{"messageStop": {...}}``.

    Raises:
        StreamMisuse: it has another form.
    """
    if not isinstance(parsed, Mapping) or len(parsed) != 1:
        raise StreamMisuse("a parsed event of this dialect is a mapping with one member: its name and its content")
    ((name, content),) = parsed.items()
    return (b"error" if str(name).endswith("Exception") else str(name).encode("utf-8", "replace")), json_of(content)


def raised_error(cause: object) -> ProviderError | None:
    """The provider's error in an exception of a vendor's SDK, which raises errors of the stream; None for others.

    boto3 keeps it in ``response``, the libraries of OpenAI, Anthropic and Cohere in ``body``, Google's in ``details``,
    and Ollama's in ``error``.
    """
    if not isinstance(cause, Exception):
        return None
    response = getattr(cause, "response", None)
    error = response.get("Error") if isinstance(response, dict) else None
    if isinstance(error, dict):
        return ProviderError(*(str(error[name]) if error.get(name) else None for name in ("Code", "Message")))
    for name in ("body", "details", "error"):
        told = getattr(cause, name, None)
        if told and isinstance(told, (dict, str)):
            return error_in(told) or error_in({"error": told})
    return None


def _plain(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, (bytes, bytearray)) else str(value)
