"""Permissions and business rules before a handler is entered: the hook's words, and how they are read.

A hook that fails permits nothing: its exception denies the call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..store.sealing import scrub
from .call import Call


@dataclass(frozen=True, slots=True)
class Allow:
    """Run it."""


@dataclass(frozen=True, slots=True)
class Deny:
    """Refuse it; the reason is stored and told to the model."""

    reason: str = "not permitted"


@dataclass(frozen=True, slots=True)
class Ask:
    """Hold it until a person approves or denies it; once, within the tool's approval lifetime."""

    reason: str = ""


Decision = Allow | Deny | Ask
Hook = Callable[[Call, dict[str, Any]], Decision | bool | None]


def consult(hook: Hook | None, call: Call, arguments: dict[str, Any], *, approved: bool) -> Decision:
    """Ask the hook. A call that a person has approved is not asked about again, but may still be denied."""
    if hook is None:
        return Allow()
    try:
        said = hook(call, arguments)
    except Exception:
        call.logger.exception("the authorize hook failed; denied")  # without secrets: the hook sees them in clear
        return Deny("the rules for this tool could not be checked")
    match said:
        case None | True | Allow():
            return Allow()
        case False:
            return Deny()
        case Deny(reason):
            return Deny(scrub(reason, call.secrets))
        case Ask():
            return Allow() if approved else said
