"""Parses the JSON inside one event (a frame) and finds the provider's error in it.

Decides which data is a frame and which frames are errors. Must not know what a dialect does with the others.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from jiter import from_json

from .arguments import strict_json
from .json_scan import CutText, NotJson, Repeated, SecondObject
from .limits import TurnLimits
from .sse import tells_error

# Levels of objects and lists that a frame may have around an argument object, besides the object's own nesting.
_ENVELOPE = 32
# Members that hold arguments: duplicate keys inside them are the fault of one call, not of the frame.
_ARGUMENTS = frozenset({"args", "arguments", "input"})
# An error document is near the top of the stray lines; at most this many lines are tried as its beginning.
_MAX_STRAY_STARTS = 64


@dataclass(frozen=True, slots=True)
class ProviderError:
    """The error as the provider reported it. It is kept apart from any text that a user may see.

    Attributes:
        code: the machine-readable kind (``overloaded_error``, ``rate_limit_exceeded``); None where none was given.
        message: the provider's message. It may quote the request, so it is for logs and not for users.
        status: the HTTP status code, or Google's status name; None where none was given.
    """

    code: str | None = None
    message: str | None = None
    status: int | str | None = None


class BadFrame(ValueError):
    """The data of an event is not JSON."""


def parse_frame(data: bytes, limits: TurnLimits) -> Any:
    """The value in an event's data.

    The fast parser reads it, and the strict one what the fast one refuses. A frame with a duplicate key outside of its
    arguments is returned as ``Repeated``: nobody can say which of the two values was meant.

    Raises:
        BadFrame: it is not JSON.
    """
    try:
        return from_json(data, allow_inf_nan=False, catch_duplicate_keys=True)
    except ValueError:
        pass
    try:
        value = strict_json(data.decode(), limits.nesting + _ENVELOPE, limits.digits)
    except (CutText, NotJson, SecondObject):
        raise BadFrame from None
    return [_marked(item) for item in value] if isinstance(value, list) else _marked(value)


def _marked(value: Any) -> Any:
    return Repeated(value) if isinstance(value, dict) and _repeats(value) else value


def is_json(data: bytes, limits: TurnLimits) -> bool:
    """Whether this is one complete JSON value."""
    try:
        parse_frame(data, limits)
    except (BadFrame, UnicodeDecodeError):
        return False
    return True


def _repeats(frame: dict[str, Any]) -> bool:
    """Whether an object of the frame, outside of arguments, has a duplicate key."""
    level: list[Any] = [frame]
    while level:
        if any(type(value) is Repeated for value in level):
            return True
        level = [inner for value in level for inner in _inner_values(value)]
    return False


def _inner_values(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [inner for name, inner in value.items() if name not in _ARGUMENTS]
    return value if isinstance(value, list) else []


def error_in(value: Any) -> ProviderError | None:
    """The error that a frame, a body or an item of a list reports; None where it reports none."""
    if isinstance(value, dict):
        error = value.get("error")
        if error is not None:
            return _described(error if isinstance(error, dict) else {"message": str(error)})
        is_error = value.get("type") == "error" or value.get("event_type") == "error"
        return _described(value) if is_error else None
    if isinstance(value, list):
        return next((error for item in value if (error := error_in(item))), None)
    return None


def error_event(data: bytes) -> ProviderError:
    """The error of an event named ``error``, whatever its data is."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return ProviderError(message=data.decode("utf-8", "replace"))
    return error_in(value) or _described(value if isinstance(value, dict) else {"message": str(value)})


def stray_error(lines: list[bytes]) -> ProviderError | None:
    """The error among lines that are not SSE: a document, of one line or several, or a field named ``error``."""
    for line in lines:
        name, _, value = line.partition(b":")
        if name == b"error" and tells_error(value):
            return error_event(value.strip())
    starts = [number for number, line in enumerate(lines) if line.lstrip().startswith((b"{", b"["))]
    for start in starts[:_MAX_STRAY_STARTS]:
        text = b"\n".join(lines[start:]).decode("utf-8", "replace").lstrip()
        try:
            value, _ = json.JSONDecoder().raw_decode(text)
        except (ValueError, RecursionError):
            continue
        if error := error_in(value):
            return error
    return None


def _described(error: dict[str, Any]) -> ProviderError:
    words = [error.get(name) for name in ("code", "type", "status")]
    numbers = [error.get(name) for name in ("status", "code", "http_code", "status_code")]
    message = error.get("message")
    return ProviderError(
        code=next((word for word in words if isinstance(word, str) and word != "error"), None),
        message=message if isinstance(message, str) else None,
        status=next((number for number in numbers if isinstance(number, int)), None),
    )
