"""The JSON inside one event: read fast where that is exact, strictly where it is not; and the errors among frames.

Decides what a frame is and which frames are errors. Must not know what a dialect does with the others.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from jiter import from_json

from .arguments import strict_json
from .json_scan import CutText, NotJson, Repeated, SecondObject
from .limits import TurnLimits

# Containers that a frame may put around an argument object before that object's own nesting counts.
_ENVELOPE = 32
# What stands under these names is decoded with its call.
_ARGUMENTS = frozenset({"args", "arguments", "input"})
# An error document stands near the top of the stray lines; more starts than this are noise.
_MAX_STRAY_STARTS = 64


@dataclass(frozen=True, slots=True)
class ProviderError:
    """The provider's own words for what went wrong, kept apart from the text that a user may see.

    Attributes:
        code: the machine-readable kind (``overloaded_error``, ``rate_limit_exceeded``); None where none was given.
        message: the provider's prose. It may quote the request: for logs, not for users.
        status: the HTTP-like number or Google's status word; None where none was given.
    """

    code: str | None = None
    message: str | None = None
    status: int | str | None = None


class BadFrame(ValueError):
    """The data of an event is not JSON."""


def parse_frame(data: bytes, limits: TurnLimits) -> Any:
    """The value in an event's data.

    By the same fast way as arguments, and by the strict way where that refuses. A frame in which a member comes
    twice, arguments apart, is ``Repeated`` itself: nobody can say which one was meant.

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
    return Repeated(value) if isinstance(value, dict) and _repeats(value) else value


def _repeats(frame: dict[str, Any]) -> bool:
    """Whether some member comes twice in the frame's own objects."""
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
    """The error that a frame, a body or an element of a list of them reports; None where it reports none."""
    if isinstance(value, dict):
        error = value.get("error")
        if error is not None:
            return _described(error if isinstance(error, dict) else {"message": str(error)})
        told = value.get("type") == "error" or value.get("event_type") == "error"
        return _described(value) if told else None
    if isinstance(value, list):
        return next((error for item in value if (error := error_in(item))), None)
    return None


def error_event(data: bytes) -> ProviderError:
    """The error that an event of the name ``error`` reports, whatever its data is."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return ProviderError(message=data.decode("utf-8", "replace"))
    return error_in(value) or _described(value if isinstance(value, dict) else {"message": str(value)})


def stray_error(lines: list[bytes]) -> ProviderError | None:
    """An error document among lines that are no SSE, written over one line or several."""
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
