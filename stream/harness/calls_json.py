"""Parses calls from a JSON list, of a file or an inbox entry, by the same rules as a decoder."""

from __future__ import annotations

from typing import Any

from ..turns.turn import ToolCall
from ..wire.arguments import read_json
from ..wire.json_scan import CutText, NotJson, Repeated, SecondObject
from ..wire.limits import DEFAULT_LIMITS
from .admission_rules import RequestedCall

_AROUND = 2
"""Levels around the arguments of a call: the list, and the call itself."""


def calls_from_json(text: str) -> list[RequestedCall]:
    """Parse calls from JSON: a list of ``{"name", "arguments", "id"?, "kind"?}``; integers stay exact.

    A call that cannot be used becomes a refused one among the others, as in a decoded turn.

    Raises:
        ValueError: the text has another form; the message says what is wrong, in one line.
    """
    stored = _read(text)
    if not isinstance(stored, list):
        raise ValueError("calls: expected a list of {name, arguments, id}")
    if len(stored) > DEFAULT_LIMITS.calls:
        raise ValueError(f"calls: {len(stored)} calls in one turn; at most {DEFAULT_LIMITS.calls}")
    return [_from_json(position, item) for position, item in enumerate(stored)]


def _read(text: str) -> Any:
    try:
        return read_json(text, DEFAULT_LIMITS.nesting + _AROUND, DEFAULT_LIMITS.digits)
    except CutText as error:
        raise ValueError("calls are not valid JSON: the text ends too early") from error
    except SecondObject as error:
        raise ValueError("calls are not valid JSON: there is text after the list") from error
    except NotJson as error:
        raise ValueError("calls are not valid JSON") from error


def _from_json(position: int, item: Any) -> RequestedCall:
    if not isinstance(item, dict):
        raise ValueError(f"calls[{position}]: expected an object with a name")
    kind = item.get("kind", "function")
    if kind not in ("function", "custom"):
        raise ValueError(f"calls[{position}].kind: expected function or custom")
    call = ToolCall(item.get("name", ""), item.get("arguments"), item.get("id"), kind, position)  # type: ignore[arg-type]
    return RequestedCall.held(call, "duplicate_key" if type(item) is Repeated else "")
