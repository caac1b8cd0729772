"""Notes of provider turns that were lost: nothing of them ran, and the provider bills them. For cost control."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

from ..model.keys import Namespace
from .operation import Invocation, load

MOST = 10_000
"""How many notes are kept; the script has the number, too."""


def note_aborted(space: Namespace, facts: Mapping[str, Any]) -> Invocation[None]:
    """Keep a note with these facts, JSON-like, and the time by Redis. Noted once, also where the reply is lost."""
    line = json.dumps({"note": uuid.uuid4().hex, **facts})
    return Invocation(load("aborted"), space.root, (line, 0), lambda _reply: None)


def aborted(space: Namespace, *, most: int = 100) -> Invocation[tuple[dict[str, Any], ...]]:
    """The newest notes, each with ``at`` in ms, the newest first."""

    def read(reply: list[bytes]) -> tuple[dict[str, Any], ...]:
        pairs = zip(reply[::2], reply[1::2], strict=True)
        return tuple({**json.loads(line), "at": int(float(at))} for line, at in pairs)

    return Invocation(load("aborted"), space.root, ("", most), read)
