"""Secret fields: sealed in what is stored, masked in what is shown, scrubbed from words.

A secret is named by its path, ``token`` or ``auth.token``. Sealed, its value is ``{"$sealed": "<Fernet token>"}``.
Pure apart from Fernet's own clock and random source.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .keyring import Keyring

SEALED = "$sealed"
MASK = "***"


def seal(value: Any, paths: Iterable[str], keyring: Keyring) -> Any:
    """A copy of a JSON value with these fields encrypted; absent ones are passed over.

    Raises:
        KeyringMissing: there is something to seal and no key.
    """
    for path in paths:
        value = _change(value, path.split("."), lambda found: {SEALED: keyring.encrypt(json.dumps(found))})
    return value


def unseal(value: Any, keyring: Keyring) -> Any:
    """A copy with every sealed field in clear again.

    Raises:
        KeyringMissing: there is a sealed field and no key that fits.
    """
    return _walk(value, lambda token: json.loads(keyring.decrypt(token)))


def mask(value: Any) -> Any:
    """A copy fit for people: sealed fields show as ``***``."""
    return _walk(value, lambda _token: MASK)


def secret_texts(value: Any, paths: Iterable[str]) -> tuple[str, ...]:
    """The secrets of a clear value as they might turn up in words, the longest first."""
    found: list[str] = []
    for path in paths:
        _change(value, path.split("."), lambda hit: found.extend(_texts(hit)))
    return tuple(sorted({text for text in found if text}, key=len, reverse=True))


def scrub(words: str, secrets: Iterable[str]) -> str:
    """Words with every secret replaced by ``***``."""
    for secret in secrets:
        words = words.replace(secret, MASK)
    return words


def scrub_value(value: Any, secrets: Sequence[str]) -> Any:
    """A copy of a JSON value in whose texts every secret is replaced; sealed fields stay as they are."""
    match value:
        case str():
            return scrub(value, secrets)
        case {"$sealed": str()} if len(value) == 1:
            return value
        case dict():
            return {scrub(name, secrets): scrub_value(item, secrets) for name, item in value.items()}
        case list():
            return [scrub_value(item, secrets) for item in value]
        case _:
            return value


def _change(value: Any, path: list[str], change: Callable[[Any], Any]) -> Any:
    if isinstance(value, list):
        return [_change(item, path, change) for item in value]
    if not isinstance(value, dict) or path[0] not in value:
        return value
    inner = value[path[0]]
    if len(path) > 1:
        return {**value, path[0]: _change(inner, path[1:], change)}
    sealed_already = isinstance(inner, dict) and set(inner) == {SEALED}
    return value if sealed_already else {**value, path[0]: change(inner)}


def _walk(value: Any, open_: Callable[[str], Any]) -> Any:
    match value:
        case {"$sealed": str(token)} if len(value) == 1:
            return open_(token)
        case dict():
            return {name: _walk(item, open_) for name, item in value.items()}
        case list():
            return [_walk(item, open_) for item in value]
        case _:
            return value


def _texts(value: Any) -> list[str]:
    match value:
        case str():
            return [value]
        case bool() | None:
            return []
        case int() | float():
            return [str(value)]
        case dict():
            return [text for item in value.values() for text in _texts(item)]
        case list():
            return [text for item in value for text in _texts(item)]
        case _:
            return []
