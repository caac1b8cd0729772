"""Permissions and business rules before a handler is entered: the answers of the hook, and what they mean.

A hook that fails, or gives an undocumented answer, denies the call.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from .call import Call
from .handler_result import told

UNCHECKED = "the rules for this tool could not be checked"


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
Answer = Decision | bool | None
Hook = Callable[[Call, dict[str, Any]], Answer | Awaitable[Answer]]
Wait = Callable[[Awaitable[Any], float | None], Any]
"""Runs what an async hook has returned to its end, for at most so many seconds."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What has to be asked before a tool runs.

    Attributes:
        approval: what the tool declares: ``never``, ``always`` or ``hook``.
        hooks: of all registries that the tool was taken through, its own one's first.
    """

    approval: str = "never"
    hooks: tuple[Hook, ...] = ()

    @property
    def lack_a_hook(self) -> bool:
        """True where the tool leaves the decision to a hook and there is none."""
        return self.approval == "hook" and not self.hooks


def wait_here(awaitable: Awaitable[Any], seconds: float | None) -> Any:
    """Run it to its end on an event loop of this thread's own; the way of tests."""

    async def awaited() -> Any:
        return await asyncio.wait_for(awaitable, seconds)

    return asyncio.run(awaited())


def consult(
    rules: Rules, call: Call, copy: Callable[[], dict[str, Any]], *, approved: bool, wait: Wait = wait_here
) -> Decision:
    """Ask all that is to be asked; the strictest answer counts. What a person has approved is not asked about again,
    but may still be denied.

    Args:
        copy: the arguments as the handler takes them, again for each hook: what a hook changes, nobody else sees.
    """
    if rules.lack_a_hook:
        call.logger.error("the tool leaves its approval to a hook, and there is none here; denied")
        return Deny(UNCHECKED)
    asked: Decision = Ask() if rules.approval == "always" else Allow()
    for hook in rules.hooks:
        heard = _hear(hook, call, copy, wait)
        if isinstance(heard, Deny):
            return heard
        asked = heard if isinstance(heard, Ask) else asked
    return Allow() if approved else asked


def _hear(hook: Hook, call: Call, copy: Callable[[], dict[str, Any]], wait: Wait) -> Decision:
    try:
        said = hook(call, copy())
        return _read(call, wait(said, call.remaining) if inspect.isawaitable(said) else said)
    except BaseException:  # as for handlers: a hook that raises SystemExit denies its call, and ends nothing else
        call.logger.exception("the authorize hook failed; denied")  # without secrets: the hook sees them in clear
        return Deny(UNCHECKED)


def _read(call: Call, said: Any) -> Decision:
    match said:
        case False:
            return Deny()
        case Deny(reason):
            return Deny(told(reason, call.secrets))
        case Ask():  # before Allow: a class of the user's may be both
            return said
        case None | True | Allow():
            return Allow()
    what = f"the class {said.__name__}" if isinstance(said, type) else f"a value of type {type(said).__name__}"
    call.logger.error("the authorize hook answered with %s; denied: answer with Allow(), Deny(), Ask(), ...", what)
    return Deny(UNCHECKED)
