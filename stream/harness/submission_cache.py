"""What a client remembers from one submission to the next, to save round trips. Decides nothing: the store does."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from ...store.model.keys import Namespace
from ...store.model.specs import Published
from ...store.operations.operation import Operation
from ...store.operations.tools import published

_MOST_TURNS = 10_000


class SubmissionCache:
    """The published specs as this client last read them, and the turns that it has submitted lately.

    A turn that is new to this client is probably new to the store, and is admitted without a lookup before; one that it
    has submitted is probably a repeat, and a lookup costs less than an admission. Wrong guesses cost time only.
    """

    def __init__(self) -> None:
        self._known = Published(0, {})
        self._turns: dict[str, None] = {}

    @property
    def is_filled(self) -> bool:
        return bool(self._known.tools)

    def get(self, space: Namespace) -> Generator[Operation[Any], Any, Published]:
        if not self._known.tools:
            self._known = yield published(space)
        return self._known

    def forget(self) -> None:
        """Read the specs again before the next use; admission has reported a change."""
        self._known = Published(0, {})

    def is_new(self, turn_key: str) -> bool:
        """Whether this is the first submission of the turn here; it is remembered from now on."""
        if turn_key in self._turns:
            return False
        self._turns[turn_key] = None
        if len(self._turns) > _MOST_TURNS:
            self._turns.pop(next(iter(self._turns)), None)  # another thread may have taken it
        return True
