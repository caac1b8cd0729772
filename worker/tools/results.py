"""What a handler returned, as JSON text for the store, with marks where the stored form is not all of the value.

A value that is not JSON, or too large, is still a success: the effect has happened. It is stored as well as it can
be, visibly marked, and never a reason to run again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from ...store.model.parts import Parts
from ...store.model.plain import plain_value, whole_text
from ...store.model.secret_texts import MASK

DEFAULT_LIMIT = 1_000_000
"""Bytes of JSON text. Harnesses hand results to a model, whose context holds less."""


def encode(value: Any, limit: int | None = DEFAULT_LIMIT, *, hides: bool = False) -> tuple[str, str]:
    """The value's JSON text and its marks as JSON text ("" for none).

    Marks: ``{"lossy": true}`` where parts were no JSON and are shown as text; ``{"truncated": true, "size": bytes,
    "sha256": hex}`` where only the beginning is kept, as text.

    Args:
        limit: bytes; None leaves the cut to `protect`.
        hides: the value has secret fields: where no JSON says which part is which, ``***`` stands for all of it.
    """
    marks: dict[str, Any] = {}
    if isinstance(value, Parts):
        value = value.to_json()
    text = _exact(value)
    if text is None:
        marks["lossy"] = True
        text = _lossy(value, hides=hides)
    if limit is not None:
        text, cut = _cut(text, limit)
        marks |= cut
    return text, json.dumps(marks) if marks else ""


def protect(text: str, marks: str, limit: int, change: Callable[[Any], Any]) -> tuple[str, str]:
    """Encoded text with its secrets taken care of, and only then cut: a cut in a secret leaves a part of it."""
    stored = json.dumps(change(json.loads(text)), ensure_ascii=False, separators=(",", ":"))
    text, cut = _cut(stored, limit)
    known = {**(json.loads(marks) if marks else {}), **cut}
    return text, json.dumps(known) if known else ""


def _cut(text: str, limit: int) -> tuple[str, dict[str, Any]]:
    """JSON text that fits the limit, and the marks of a cut."""
    if len(text) * 4 <= limit or len(raw := text.encode()) <= limit:
        return text, {}
    shown = json.loads(text) if text.startswith('"') else text
    marks = {"truncated": True, "size": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}
    return _beginning(shown, limit), marks


def _beginning(text: str, limit: int) -> str:
    """As much of a text as fits the limit once it is JSON; escapes make it longer, so the half is tried first."""
    cut = limit // 2
    while len((kept := _ENCODE(text.encode("utf-8", "replace")[:cut].decode("utf-8", "ignore"))).encode()) > limit:
        cut //= 2
    return kept


def _exact(value: Any) -> str | None:
    """JSON text that says all of it; None where there is none, or it holds lone surrogates."""
    try:
        text = _ENCODE(value)
        text.isascii() or text.encode()
    except (TypeError, ValueError, RecursionError):
        return None
    return text


def _known(value: Any) -> Any:
    """Types with a JSON form of their own: models, dataclasses, dates, UUIDs, enums, decimals."""
    if isinstance(value, bytes | set | frozenset):
        raise TypeError(f"{type(value).__name__} has no JSON form of its own")
    try:
        return to_jsonable_python(value, inf_nan_mode="constants", serialize_unknown=False)
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        raise TypeError(f"{type(value).__name__} is not JSON") from error


_ENCODE = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_known).encode


def _lossy(value: Any, *, hides: bool) -> str:
    """As much of it as JSON can show; the rest as text."""
    try:
        return whole_text(_ENCODE(value))  # all that was wrong is a text that is not UTF-8
    except (TypeError, ValueError, RecursionError):
        pass
    try:
        text = to_json(value, inf_nan_mode="strings", bytes_mode="base64", fallback=repr).decode()
    except Exception:  # a cycle, or an error of a handler's own type; the effect has happened nevertheless
        text = json.dumps(plain_value(value) if isinstance(value, dict | list | tuple) else _repr(value))
    return json.dumps(MASK) if hides and text.startswith('"') else text


def _repr(value: Any) -> str:
    try:
        return whole_text(repr(value))
    except Exception:
        return f"<{type(value).__name__}>"
