"""Tool annotations of the Model Context Protocol, to and from what we declare.

They are hints, and a server may lie: a hint from one that is not trusted never makes a tool safer than ``mutating``.
"""

from __future__ import annotations

from typing import Any

from ...store.model.specs import Effect, ToolSpec


def effect_of(annotations: dict[str, Any] | None, *, trusted: bool = False) -> Effect:
    """What a tool's annotations let us assume. Absent hints mean the worst, as in the protocol."""
    if not trusted or not annotations:
        return Effect.MUTATING
    if annotations.get("readOnlyHint") is True:
        return Effect.READ
    if annotations.get("idempotentHint") is True:
        return Effect.IDEMPOTENT
    return Effect.MUTATING


def annotations_of(spec: ToolSpec) -> dict[str, Any]:
    """What we can tell others about a tool. Whether it destroys, or reaches into an open world, we do not know, and so
    say nothing."""
    return {
        "readOnlyHint": spec.effect is Effect.READ,
        "idempotentHint": spec.effect in {Effect.READ, Effect.IDEMPOTENT},
    }
