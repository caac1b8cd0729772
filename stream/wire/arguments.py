"""The strict decoding of a call's arguments, which come as JSON text or as an object inside a frame.

Decides what a call's arguments are, or why they are refused. They are decoded once, after the turn ended, and never
repaired. Must not know which dialect they came from.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from jiter import from_json

from .json_scan import TOO_DEEP, CutText, Mark, NotJson, Repeated, SecondObject, integer, join_surrogates, members, scan
from .limits import DEFAULT_LIMITS, TurnLimits

# Reasons to refuse arguments. Where several apply, the first one in this order is reported.
_REASONS = ("invalid_json", "too_deep", "too_large", "not_an_object", "duplicate_key", "non_finite", "lone_surrogate")
# The smallest limit that `sys.set_int_max_str_digits` accepts.
_LEAST_DIGITS = 640

_WRITING = json.JSONEncoder(ensure_ascii=False, check_circular=False)  # what was JSON has no cycles
# A value that JSON cannot hold is written as the name of its type: its repr would differ from process to process.
_WRITING_ANY = json.JSONEncoder(ensure_ascii=False, default=lambda value: f"<{type(value).__name__}>")
_SORTING = json.JSONEncoder(sort_keys=True, check_circular=False)

_PLAIN_MEMBERS, _PLAIN_INTEGER = 32, 2**31


class Unusable(ValueError):
    """The arguments show that the turn itself is damaged; ``str()`` says how."""


@dataclass(slots=True)
class DecodedArguments:
    """The arguments of one call after decoding.

    Attributes:
        value: the object (for free text: the text); None when refused.
        came: the text as it came; None for an object that came inside a frame.
        reason: why this call is refused; None when it is not.
    """

    value: dict[str, Any] | str | None
    came: str | None
    reason: str | None = None

    @property
    def text(self) -> str:
        """The text as it came, or the JSON of an object, written when somebody asks for it."""
        return json_text(self.value) if self.came is None else self.came


def decode_pieces(pieces: list[Any], limits: TurnLimits) -> DecodedArguments:
    """Decode what came for one call: pieces of text, or one value from inside a frame, in order.

    Raises:
        Unusable: the text is cut, holds two objects, or texts and objects are mixed.
    """
    pieces = without_placeholder(pieces)
    if not pieces:
        return DecodedArguments({}, "")
    if _are_texts(pieces):
        return decode_text(joined(pieces), limits)
    if len(pieces) > 1:
        raise Unusable("arguments came as an object and as text")
    return check_value(pieces[0], limits)


def without_placeholder(pieces: list[Any]) -> list[Any]:
    """The pieces without the ``{}`` that some servers send before the text."""
    if len(pieces) < 2 or pieces[0] not in ("{}", {}):
        return pieces
    return pieces[1:] if _are_texts(pieces[1:]) else pieces


def _are_texts(pieces: list[Any]) -> bool:
    return {*map(type, pieces)} == {str}


def decode_text(text: str, limits: TurnLimits) -> DecodedArguments:
    """Decode a JSON text. Raises as ``decode_pieces``.

    ``null`` stands for no arguments: real servers write it for a tool without parameters, and it carries nothing that
    could be half of something.
    """
    if not text:
        return DecodedArguments({}, "")
    try:
        value = read_json(text, limits.nesting, limits.digits)
    except CutText:
        raise Unusable("an argument text is cut") from None
    except SecondObject:
        raise Unusable("two objects in one argument text") from None
    except NotJson:
        return DecodedArguments(None, text, "invalid_json")
    if value is None:
        return DecodedArguments({}, "")
    reason = _fault(value, limits)
    return DecodedArguments(None, text, reason) if reason else DecodedArguments(value, text)


def check_value(value: Any, limits: TurnLimits) -> DecodedArguments:
    """Check arguments that were parsed together with their frame."""
    reason = _fault(value, limits)
    return DecodedArguments(None, json_text(value), reason) if reason else DecodedArguments(value, None)


def check_held(value: Any, kind: str, limits: TurnLimits = DEFAULT_LIMITS) -> DecodedArguments:
    """Check the arguments of a call that the caller built, of any type: refused for the same reasons as decoded ones,
    and as ``invalid_json`` where JSON cannot hold a value. Raises nothing; the text is the same in every process.
    """
    if value is None or (isinstance(value, str) and not value):
        return DecodedArguments("" if kind == "custom" else {}, "")
    if kind == "custom":
        if isinstance(value, str):
            return decode_free_text([str(value)])
        return DecodedArguments(None, _held_text(value), "not_text")
    if limits is DEFAULT_LIMITS and _is_plain(value):
        return DecodedArguments(value, None)
    reason = _fault(value, limits, limits.held_values)
    if reason == "too_large":
        return DecodedArguments(None, "", reason)  # no text: to write it could take all memory
    return DecodedArguments(None, _held_text(value), reason) if reason else DecodedArguments(value, None)


def _is_plain(value: Any) -> bool:
    """Whether it is a small object of ASCII texts, small integers, truth values and nulls, as most arguments are: such
    a one has no fault, and is told so several times faster."""
    if type(value) is not dict or len(value) > _PLAIN_MEMBERS:
        return False
    for name, member in value.items():
        if type(name) is not str or not name.isascii():
            return False
        kind = type(member)
        if not (
            (kind is str and member.isascii())
            or (kind is int and -_PLAIN_INTEGER < member < _PLAIN_INTEGER)
            or kind is bool
            or member is None
        ):
            return False
    return True


def _held_text(value: Any) -> str:
    try:
        return _WRITING_ANY.encode(value)
    except (RecursionError, ValueError, TypeError):  # too deep or circular; a huge integer; a key that is not a string
        return f"<{type(value).__name__}>"


def json_text(value: Any, *, sorted_members: bool = False) -> str:
    """The value as JSON; empty where it is deeper than the standard writer goes (no such text is empty otherwise)."""
    try:
        return (_SORTING if sorted_members else _WRITING).encode(value)
    except RecursionError:
        return ""


def decode_free_text(pieces: list[Any]) -> DecodedArguments:
    """The input of a custom tool: any text that can be written as UTF-8. Raises as ``decode_pieces``."""
    if pieces and not _are_texts(pieces):
        raise Unusable("free text came as something else")
    text = joined(pieces)
    return DecodedArguments(text, text) if encodable(text) else DecodedArguments(None, text, "lone_surrogate")


def joined(pieces: list[str]) -> str:
    """The pieces as one text; a surrogate pair that was split between two of them is put together."""
    text = "".join(pieces)
    return text if encodable(text) else join_surrogates(text)


def best_effort_object(pieces: list[Any]) -> dict[str, Any]:
    """The arguments of a call that the provider runs, for its echo: an empty object where they cannot be decoded."""
    try:
        value = decode_pieces(pieces, TurnLimits()).value
    except Unusable:
        return {}
    return value if isinstance(value, dict) else {}


def read_json(text: str, nesting: int, digits: int) -> Any:
    """The value of a JSON text, with the marks of ``json_scan`` where it holds what it must not.

    jiter is several times faster than ``json``. Texts that it would read differently (duplicate keys, NaN, integers of
    many digits, lone surrogates, deep nesting) it refuses with these options, and ``strict_json`` reads them.

    Raises:
        CutText, SecondObject, NotJson: from ``json_scan``.
    """
    try:
        return from_json(text.encode(), allow_inf_nan=False, catch_duplicate_keys=True)
    except ValueError:
        return strict_json(text, nesting, digits)


def strict_json(text: str, nesting: int, digits: int) -> Any:
    """The same with the standard library, and with ``scan`` for what that refuses. Raises as ``read_json``."""
    decoder = json.JSONDecoder(object_pairs_hook=members, parse_int=lambda found: integer(found, digits))
    try:
        return decoder.decode(text)
    except (ValueError, RecursionError):
        return scan(text, nesting, digits)


def _fault(value: Any, limits: TurnLimits, most: int = sys.maxsize) -> str | None:
    """The first reason to refuse, in the order of ``_REASONS``; at most `most` values are looked at."""
    found = _faults(value, limits, most)
    if not isinstance(value, dict):
        found.add("not_an_object")
    return next(reason for reason in _REASONS if reason in found) if found else None


def _faults(root: Any, limits: TurnLimits, most: int) -> set[str]:
    found: set[str] = set()
    level, room = [root], most
    for _ in range(limits.nesting):
        inner: list[Any] = []
        for value in level:
            inner.extend(_look(value, found, limits.digits))
            if len(inner) > room:
                return found | {"too_large"}
        if not inner:
            return found
        level, room = inner, room - len(inner)
    if any(isinstance(value, (dict, list, tuple)) for value in level):
        found.add("too_deep")
    for value in level:
        _look(value, found, limits.digits)
    return found


def _look(value: Any, found: set[str], digits: int) -> Iterable[Any]:
    """Note the faults of one value, and return its inner values."""
    if isinstance(value, str):
        if isinstance(value, Mark):
            found.add("too_deep" if value is TOO_DEEP else "too_large")
        elif not encodable(value):
            found.add("lone_surrogate")
    elif isinstance(value, dict):
        if type(value) is Repeated:
            found.add("duplicate_key")
        found |= _faults_of_keys(value)
        return value.values()
    elif isinstance(value, (list, tuple)):
        return value
    elif isinstance(value, float):
        if not math.isfinite(value):
            found.add("non_finite")
    elif isinstance(value, int):
        if _is_longer(value, digits):
            found.add("too_large")
    elif value is not None:
        found.add("invalid_json")  # a Python value that JSON cannot hold: bytes, a date, a set
    return ()


def _faults_of_keys(value: dict[Any, Any]) -> set[str]:
    try:
        return set() if encodable("".join(value)) else {"lone_surrogate"}  # all keys at once
    except TypeError:
        return {"invalid_json"}


def _is_longer(value: int, digits: int) -> bool:
    if value.bit_length() <= 3 * min(digits, _LEAST_DIGITS):  # 3.3 bits to a digit
        return False
    try:
        return len(str(abs(value))) > digits
    except ValueError:  # this process allows even fewer digits
        return True


def storable(text: str) -> str:
    """The text with U+FFFD in place of each lone surrogate."""
    return text if encodable(text) else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def encodable(text: str) -> bool:
    """Whether the text can be written as UTF-8. Half a surrogate pair cannot."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
