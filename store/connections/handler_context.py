"""Are we inside a tool's handler? A handler that waits for another call would hold a slot that this call may need:
enough of them, and nothing moves any more. So waiting is refused there; submitting is not.
"""

from __future__ import annotations

from contextvars import ContextVar

from ..model.errors import StoreMisuse

_INSIDE = ContextVar("toolonce_inside_handler", default=False)


def mark_inside() -> None:
    """Mark this thread (and the tasks it starts) as one that runs handlers."""
    _INSIDE.set(True)


def refuse_to_wait() -> None:
    """Called before anything waits for the outcome of a call.

    Raises:
        StoreMisuse: we are in a handler.
    """
    if _INSIDE.get():
        raise StoreMisuse(
            "a tool's handler waits for another call: with all slots taken by such handlers nothing would move; "
            "submit it and return, or do its work directly"
        )
