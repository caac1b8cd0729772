"""Secret fields: sealed in what is stored, masked in what is shown. How secrets look in words is `secret_texts`'.

A secret is named by its path, ``token`` or ``auth.token``; lists on the way are looked through. Sealed, its value is
``{"$sealed": "<Fernet token>"}``, and the token holds ``{v, tenant, tool, field, value}``: whose value it is and where
it belongs, which is checked when it is opened. `field` is ``arguments.<path>`` or ``result.<path>``. Anywhere else a
token is the text that it is. Pure apart from Fernet's own clock and random source.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from .errors import CorruptRecord, KeyringMissing
from .keyring import Keyring
from .secret_texts import MASK
from .specs import ToolSpec

SEALED = "$sealed"
VERSION = 1
_MEMBERS = frozenset({"tenant", "tool", "field", "value"})
_Change = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Sealer:
    """Seals and opens the fields of one tool for one tenant.

    Raises:
        KeyringMissing: (all methods that seal) there is something to seal and no key.
    """

    keyring: Keyring
    tenant: str
    tool: str

    def seal_arguments(self, arguments: Any, paths: Iterable[str]) -> Any:
        """A copy with these fields encrypted, whatever they hold; absent ones are passed over."""
        for path in _outermost(paths):
            arguments = _change(arguments, path.split("."), partial(self._sealed, f"arguments.{path}"))
        return clear(arguments)

    def seal_whole(self, arguments: Any) -> Any:
        """Arguments that do not fit, as one token: a secret may stand in any place of them."""
        return self._sealed("arguments.", arguments).value

    def seal_result(self, value: Any, paths: Iterable[str], rest: _Change = lambda value: value) -> Any:
        """The same for fields of a result; `rest` changes what is not sealed, and passes over what is not JSON."""
        for path in _outermost(paths):
            value = _change(value, path.split("."), partial(self._sealed, f"result.{path}"))
        return clear(rest(value))

    def accept(self, arguments: Any, paths: Iterable[str], tools: Mapping[str, ToolSpec]) -> Any:
        """Arguments as a model sent them, with the tokens in these fields opened that may be opened there.

        A token may be opened that was sealed for this tenant, and for this field or by a result field whose tool lists
        this one in its `opens_in`. All others stay as they are. What was opened is an `Accepted`: `clear` turns it into
        its value, `seal_arguments` seals it together with its token.
        """
        for path in _outermost(paths):
            arguments = _change(arguments, path.split("."), partial(self._accepted, tools, path))
        return arguments

    def open_arguments(self, arguments: Any, paths: Iterable[str], *, as_came: bool = False) -> tuple[Any, list[Any]]:
        """Stored arguments in clear, and the values that were opened.

        Args:
            paths: the secret fields as the tool declares them now; an earlier version may have had others, whose
                tokens say so themselves.
            as_came: tokens that admission opened are tokens again, as their fingerprint has them.

        Raises:
            CorruptRecord: a field of `paths` holds a token that no key here opens, or that belongs elsewhere.
        """
        opened: list[Any] = []
        secret = set(_outermost(paths))

        def open_(token: str, path: str) -> Any:
            plain = self._opened(token)
            if plain and self._belongs(plain) == f"arguments.{path}":
                opened.append(plain["value"])
                return plain["came"] if as_came and "came" in plain else plain["value"]
            if path in secret:
                raise CorruptRecord(f"the sealed field {path} cannot be opened: it belongs elsewhere, or no key fits")
            return {SEALED: token}

        return _walk(arguments, open_), opened

    def _sealed(self, field: str, found: Any) -> _Ready:
        plain = {"v": VERSION, "tenant": self.tenant, "tool": self.tool, "field": field}
        if isinstance(found, Accepted):
            plain |= {"value": found.value, "came": {SEALED: found.token}}
        else:
            plain["value"] = found
        return _Ready({SEALED: self.keyring.encrypt(json.dumps(plain))})

    def _accepted(self, tools: Mapping[str, ToolSpec], path: str, found: Any) -> Any:
        token = _token(found)
        plain = self._opened(token) if token is not None else None
        if token is None or plain is None or plain.get("tenant") != self.tenant:
            return found
        producer, field = tools.get(str(plain["tool"])), str(plain["field"])
        listed = producer.opens_in.get(field.removeprefix("result."), ()) if producer else ()
        is_ours = self._belongs(plain) == f"arguments.{path}"
        if is_ours or (field.startswith("result.") and f"{self.tool}.{path}" in listed):
            return Accepted(token, plain["value"])
        return found

    def _belongs(self, plain: Mapping[str, Any]) -> str:
        """The field that a token is for, "" where it is another tenant's or another tool's."""
        return str(plain["field"]) if (plain["tenant"], plain["tool"]) == (self.tenant, self.tool) else ""

    def _opened(self, token: str) -> dict[str, Any] | None:
        """What a token holds; None for a text that is none of ours."""
        try:
            plain = json.loads(self.keyring.decrypt(token))
        except (KeyringMissing, ValueError):
            return None
        return plain if isinstance(plain, dict) and plain.get("v") == VERSION and plain.keys() >= _MEMBERS else None


@dataclass(frozen=True, slots=True)
class _Ready:
    """A part of a value that is as it has to be: who goes through the value passes it over."""

    value: Any


@dataclass(frozen=True, slots=True)
class Accepted:
    """A token in arguments that was opened, and its value."""

    token: str
    value: Any


def clear(value: Any) -> Any:
    """A copy in which each `Accepted` is its value."""
    match value:
        case Accepted() | _Ready():
            return value.value
        case dict():
            return {name: clear(item) for name, item in value.items()}
        case list():
            return [clear(item) for item in value]
        case _:
            return value


def mask(value: Any) -> Any:
    """A copy fit for people: sealed fields show as ``***``."""
    return _walk(value, lambda _token, _path: MASK)


def values_at(value: Any, paths: Iterable[str]) -> Iterator[Any]:
    """What a value holds at these paths."""
    found: list[Any] = []
    for path in paths:
        _change(value, path.split("."), found.append)
    yield from found


def _outermost(paths: Iterable[str]) -> list[str]:
    """Without those that lie inside of another: that one is sealed as a whole."""
    known = list(paths)
    return [path for path in known if not any(path.startswith(f"{outer}.") for outer in known)]


def _token(value: Any) -> str | None:
    match value:
        case {"$sealed": str(token)} if len(value) == 1:
            return token
        case _:
            return None


def _change(value: Any, path: list[str], change: _Change) -> Any:
    if isinstance(value, list):
        return [_change(item, path, change) for item in value]
    if not isinstance(value, dict) or path[0] not in value:
        return value
    inner = value[path[0]]
    return {**value, path[0]: _change(inner, path[1:], change) if len(path) > 1 else change(inner)}


def _walk(value: Any, open_: Callable[[str, str], Any], path: str = "") -> Any:
    token = _token(value)
    if token is not None:
        return open_(token, path)
    match value:
        case dict():
            return {name: _walk(item, open_, f"{path}.{name}" if path else name) for name, item in value.items()}
        case list():
            return [_walk(item, open_, path) for item in value]
        case _:
            return value
