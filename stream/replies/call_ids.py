"""Call ids on the way out: which ids a target refuses, and what stands in for a refused one.

An id that the target takes passes unchanged. A missing, refused or repeated one is replaced, on the call and on its
result alike, by a digest of (turn id, position, id as it came): the same after any restart, in every process, and
never equal to another id of the turn. Knows the ids of one turn; not what was asked and not how a message looks.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Sequence, Set
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class IdRule:
    """What a target demands of a call id.

    Attributes:
        max_length: the longest id in characters that is taken; None where no limit is known.
        pattern: what the whole id must look like; None where anything goes that can be written as UTF-8.
        pairs: False where calls and results pair by order and name: then ids pass, and a missing one stays away.
    """

    max_length: int | None = None
    pattern: re.Pattern[str] | None = None
    pairs: bool = True

    def accepts(self, call_id: str | None) -> bool:
        if not call_id or not _is_writable(call_id):
            return False
        fits = self.max_length is None or len(call_id) <= self.max_length
        return fits and (self.pattern is None or self.pattern.fullmatch(call_id) is not None)


def outbound_ids(rule: IdRule, turn_id: str | None, call_ids: Sequence[str | None]) -> tuple[str | None, ...]:
    """The ids to send for all calls of one turn, in call order; the index is the call's position.

    Of equal ids the first keeps its own. None occurs only where ``rule.pairs`` is False.
    """
    if not rule.pairs:
        return tuple(call_id or None for call_id in call_ids)
    kept = {call_id: position for position, call_id in reversed(list(enumerate(call_ids))) if rule.accepts(call_id)}
    return tuple(
        call_id if kept.get(call_id) == position else _stand_in((turn_id, str(position), call_id), kept.keys())
        for position, call_id in enumerate(call_ids)
    )


def _stand_in(parts: tuple[str | None, ...], taken: Set[str | None]) -> str:
    """A fresh id of 37 plain characters, which every known target takes (the tightest limit is 40)."""
    for salt in itertools.count():
        digest = hashlib.blake2b(str(salt).encode(), digest_size=16)
        for part in parts:
            text = b"" if part is None else part.encode("utf-8", "surrogatepass")
            digest.update(b"%d:" % (-1 if part is None else len(text)) + text)
        candidate = f"call_{digest.hexdigest()}"
        if candidate not in taken:
            return candidate
    raise AssertionError("unreachable: count() has no end")


def _is_writable(text: str) -> bool:
    """Whether the text can be sent at all: a lone surrogate has no UTF-8 form."""
    return not any("\ud800" <= character <= "\udfff" for character in text)
