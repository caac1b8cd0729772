"""Reads finished calls that come as a JSON list, from a file or an inbox: held to what a decoder would let through."""

from __future__ import annotations

import json
from typing import Any

from .arguments import encodable, judge_value
from .json_scan import members
from .judging import Asked
from .limits import Limits


def calls_from_json(text: str) -> list[Asked]:
    """Finished calls as JSON: a list of ``{"name", "arguments", "id"?, "kind"?}``; integers stay exact.

    Raises:
        ValueError: not that shape; the message says what is wrong, in one line.
    """
    try:
        stored = json.loads(text, object_pairs_hook=members, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"calls are no JSON: {error}") from error
    if not isinstance(stored, list):
        raise ValueError("calls: expected a list of {name, arguments, id}")
    if len(stored) > Limits().calls:
        raise ValueError(f"calls: {len(stored)} of them in one turn; at most {Limits().calls}")
    return [_from_json(position, item) for position, item in enumerate(stored)]


def _from_json(position: int, item: Any) -> Asked:
    if type(item) is not dict or not isinstance(item.get("name"), str) or not item["name"]:
        raise ValueError(f"calls[{position}]: expected an object with a name")
    kind = item.get("kind", "function")
    arguments = item.get("arguments", {} if kind == "function" else "")
    call_id = item.get("id")
    if kind not in ("function", "custom"):
        raise ValueError(f"calls[{position}].kind: expected function or custom")
    if not isinstance(arguments, dict if kind == "function" else str):
        raise ValueError(f"calls[{position}].arguments: expected {'an object' if kind == 'function' else 'text'}")
    if call_id is not None and not isinstance(call_id, str):
        raise ValueError(f"calls[{position}].id: expected text")
    if isinstance(arguments, dict) and (reason := judge_value(arguments, Limits()).reason):
        raise ValueError(f"calls[{position}].arguments: {reason}")  # as a decoder would refuse them
    if not encodable(json.dumps([item["name"], call_id, arguments], ensure_ascii=False)):
        raise ValueError(f"calls[{position}]: half of a surrogate pair is no text")
    return Asked(item["name"], arguments, call_id, kind)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
