"""Asks a provider for at most one call per turn: the switch in its request body, where it has one.

Decides nothing about running calls one by one; for that, submit the turn with ``ordered=True``, which works everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..turns.errors import NotOffered, UnknownDialect
from ..turns.turn import DIALECTS

_SWITCHED = ("openai-responses", "openai-chat", "anthropic")


def forbid_parallel_calls(dialect: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a request body that allows at most one call; the body is not changed.

    A body without tools comes back as it is: these providers refuse the switch there.

    Raises:
        NotOffered: the provider has no such switch (both of Google's dialects).
        UnknownDialect: no such dialect.
    """
    if dialect not in DIALECTS:
        raise UnknownDialect(f"no dialect {dialect!r}; there are {', '.join(DIALECTS)}")
    if dialect not in _SWITCHED:
        raise NotOffered(
            f"{dialect} has no switch against parallel calls; submit with ordered=True to run them in turn"
        )
    if not body.get("tools"):
        return dict(body)
    if dialect == "anthropic":
        return {**body, "tool_choice": _anthropic_choice(body.get("tool_choice") or {"type": "auto"})}
    return {**body, "parallel_tool_calls": False}


def _anthropic_choice(choice: Mapping[str, Any]) -> dict[str, Any]:
    """The choice with the switch in it; ``none`` forbids all calls already and takes no switch."""
    return dict(choice) if choice.get("type") == "none" else {**choice, "disable_parallel_tool_use": True}
