"""Notes of provider turns that were lost: nothing of them ran, and the provider bills them. For cost control."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..model.keys import Namespace
from .operation import Invocation, invocation
from .script_arguments import arguments_of

MOST = 10_000
"""How many notes are kept; the script has the number, too."""


@arguments_of("aborted")
class AbortedArgs(NamedTuple):
    note: str
    most: int


def note_aborted(space: Namespace, facts: Mapping[str, Any]) -> Invocation[None]:
    """Keep a note with these facts, JSON-like, and the time by Redis. Noted once, also where the reply is lost."""
    line = json.dumps({"note": uuid.uuid4().hex, **facts})
    return invocation(space.root, AbortedArgs(note=line, most=0), lambda _reply: None)


def aborted(space: Namespace, *, most: int = 100) -> Invocation[tuple[dict[str, Any], ...]]:
    """The newest notes, each with ``at`` in ms, the newest first."""

    def read(reply: list[bytes]) -> tuple[dict[str, Any], ...]:
        pairs = zip(reply[::2], reply[1::2], strict=True)
        return tuple({**json.loads(line), "at": int(float(at))} for line, at in pairs)

    return invocation(space.root, AbortedArgs(note="", most=most), read)
