"""Converts tool annotations of the Model Context Protocol to and from effects.

They are hints, and a server may lie: a hint from one that is not trusted never makes a tool safer than ``mutating``.
"""

from __future__ import annotations

from typing import Any

from ...store.model.specs import Effect, ToolSpec


def effect_of(annotations: dict[str, Any] | None, *, trusted: bool = False) -> Effect:
    """The effect that a tool's annotations allow to assume. Absent hints mean the worst, as in the protocol."""
    if not trusted or not annotations:
        return Effect.MUTATING
    if annotations.get("readOnlyHint") is True:
        return Effect.READ
    if annotations.get("idempotentHint") is True:
        return Effect.IDEMPOTENT
    return Effect.MUTATING


def annotations_of(spec: ToolSpec) -> dict[str, Any]:
    """The annotations for a tool's effect. The hints for destructive and open-world tools are left out, since they are
    not known."""
    return {
        "readOnlyHint": spec.effect is Effect.READ,
        "idempotentHint": spec.effect in {Effect.READ, Effect.IDEMPOTENT},
    }
