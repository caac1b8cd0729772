"""Tools that say their secret in every way that a handler has, spelled in every way that a library might."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, quote_plus

from toolonce.worker import Call, Deny, DidNotHappen, NotStarted, Registry, ToolError

SECRET = "-----BEGIN KEY-----\nMIIE\"vQ'IBADANBg\\kqhkiG9w0\nzürich  MIDDLE%PART+7\n-----END KEY-----\n"
NUMBER = 73_519_042
SPELLINGS: dict[str, Callable[[str], str]] = {
    "raw": str,
    "folded": lambda text: " ".join(text.split()),
    "windows": lambda text: text.replace("\n", "\r\n"),
    "upper": str.upper,
    "repr": repr,
    "repr of repr": lambda text: repr(repr(text)),
    "ascii": ascii,
    "bytes": lambda text: repr(text.encode()),
    "json": lambda text: json.dumps(text, ensure_ascii=False),
    "ascii json": json.dumps,
    "json in json": lambda text: json.dumps(json.dumps(text)),
    "url": quote,
    "form": quote_plus,
    "html": html.escape,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 for urls": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "basic auth": lambda text: base64.b64encode(f"bob:{text}".encode()).decode(),
    "hex": lambda text: text.encode().hex(),
    "a line": lambda text: text.splitlines()[2],
    "cut off": lambda text: text[:60],
}
tools = Registry()


def said(key: str, way: str) -> str:
    return SPELLINGS[way](key)


@tools.tool(effect="mutating", secret=("key", "pin"), result_limit=2_000)
def returns(key: str, way: str, pin: int) -> dict[str, Any]:
    """Return it: as text, as a name, as a number, and where the cut falls."""
    words = said(key, way)
    return {"is": [words], words: "named", "pin": pin, "long": "x" * 1_700 + words}


@tools.tool(effect="mutating", secret=("key", "pin"))
def tells(key: str, way: str, pin: int, *, call: Call) -> None:
    """Say it in the words that are meant for others."""
    words = said(key, way)
    call.progress(0.5, f"with {words}")
    call.logger.warning("with %s", words, extra={"reason": words})
    try:
        raise ValueError(words)
    except ValueError:
        call.logger.exception("failed with %s", words)
    raise ToolError("x" * 1_950 + f" cannot use {words}", code=f"no {words}", details={words: [words, pin, float(pin)]})


@tools.tool(effect="mutating", secret=("key", "pin"))
def raises(key: str, way: str, pin: int) -> None:
    """Say it in an exception of its own, and in what caused it."""
    try:
        raise KeyError(said(key, way))
    except KeyError as error:
        raise type(f"Bad{way.replace(' ', '')}", (RuntimeError,), {})(f"no {said(key, way)} {pin}") from error


@tools.tool(effect="mutating", secret=("key", "pin"), isolation="process")
def raises_apart(key: str, way: str, pin: int, *, call: Call) -> None:
    """The same in a process of its own."""
    call.logger.warning("with %s", said(key, way))
    call.progress(None, said(key, way))
    raise RuntimeError(f"no {said(key, way)} {pin}")


@tools.tool(effect="read", secret=("key", "pin"), deadline=3)
def tries(key: str, way: str, pin: int) -> None:
    """Say it with the wish to be called again."""
    raise NotStarted(f"no {said(key, way)} {pin}", retry_after=0.1)


@tools.tool(effect="mutating", secret=("key", "pin"))
def reconciles(key: str, way: str, pin: int) -> None:
    """Leave it open, and say it in the reconcile."""
    raise RuntimeError(said(key, way))


@reconciles.reconcile
def _was_it(key: str, way: str, pin: int) -> None:
    raise DidNotHappen(f"no {said(key, way)} {pin}")


@tools.tool(effect="mutating", secret=("key", "pin"))
def forbidden(key: str, way: str, pin: int) -> None:
    """Never entered: the hook says it."""


@tools.authorize
def hook(call: Call, arguments: dict[str, Any]) -> Deny | None:
    return Deny(f"no {said(arguments['key'], arguments['way'])}") if call.tool == "forbidden" else None


TOOLS = ("returns", "tells", "raises", "raises_apart", "tries", "reconciles", "forbidden")


def needles() -> list[str]:
    """What must be nowhere: of each spelling pieces of sixteen characters, and the number."""
    whole = [spell(SECRET) for spell in SPELLINGS.values()]
    places = [(text, at) for text in whole for at in (8, len(text) // 2, max(8, len(text) - 24))]
    return [str(NUMBER), *dict.fromkeys(text[at : at + 16] for text, at in places if "-----" not in text[at : at + 16])]
