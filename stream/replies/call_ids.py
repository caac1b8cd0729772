"""Call ids on the way out: which ids a target refuses, and what stands in for a refused one.

An id that the target takes passes unchanged. In the place of one that an earlier turn used goes what admission chose
(`reply_id`). A missing, refused or repeated one is replaced, on the call and on its result alike, by a digest of (turn
id, id as it came, occurrence): the same after any restart, in every process, and never equal to another id of the turn.
Knows the ids of one turn; not what was asked and not how a message looks.
"""

from __future__ import annotations

import hashlib
import itertools
import re
import string
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Literal

from ...store.model.identity import references

_ALPHABET = string.digits + string.ascii_lowercase
_LETTERS = str.maketrans("0123456789abcdef", "abcdefghijklmnop")

IdForm = Literal["paired", "nine", "as_they_came"]
"""Which ids go out. ``paired``: each id once in a history, in a form that the dialect's own service takes. ``nine``:
the same in the form of Mistral's servers, nine letters or digits. ``as_they_came``: for a provider that has the calls
itself (``previous_response_id``) and knows them by no other id."""


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

    def of(self, form: IdForm) -> IdRule:
        """The rule for a form that a harness asks for."""
        if form == "paired" or not self.pairs:
            return self
        return _NINE if form == "nine" else _AS_THEY_CAME


_NINE = IdRule(max_length=9, pattern=re.compile("[a-zA-Z0-9]{9}"))
_AS_THEY_CAME = IdRule(pairs=False)


def outbound_ids(
    rule: IdRule, turn_id: str | None, call_ids: Sequence[str | None], reply_ids: Sequence[str | None] = ()
) -> tuple[str | None, ...]:
    """The ids to send for all calls of one turn, in call order; the index is the call's position.

    Of equal ids the first keeps its own. None occurs only where ``rule.pairs`` is False.

    Args:
        reply_ids: what admission chose, None for each call whose id no earlier turn used; none at all for no choice.
    """
    if not rule.pairs:
        return tuple(call_id or None for call_id in call_ids)
    wanted = [chosen or came for came, chosen in itertools.zip_longest(call_ids, reply_ids)]
    kept = {call_id: position for position, call_id in reversed(list(enumerate(wanted))) if rule.accepts(call_id)}
    taken = {call_id for call_id in kept if call_id}
    out = []
    for position, (call_id, ref) in enumerate(zip(wanted, references(call_ids), strict=True)):
        sent = call_id if kept.get(call_id) == position else _stand_in(rule, (turn_id, ref), taken)
        out.append(sent)
        taken.add(sent or "")
    return tuple(out)


def _stand_in(rule: IdRule, parts: tuple[str | None, ...], taken: Set[str]) -> str:
    """A fresh id of 29 plain characters, which nearly every target takes, or of nine letters for the others."""
    for salt in itertools.count():
        digest = hashlib.blake2b(str(salt).encode(), digest_size=16)
        for part in parts:
            text = b"" if part is None else part.encode("utf-8", "surrogatepass")
            digest.update(b"%d:" % (-1 if part is None else len(text)) + text)
        candidate = f"call_{digest.hexdigest()[:24].translate(_LETTERS)}"
        if not rule.accepts(candidate):
            candidate = _nine(int(digest.hexdigest(), 16))
        if candidate not in taken:
            return candidate
    raise AssertionError("unreachable: count() has no end")


def _nine(number: int) -> str:
    return "".join(_ALPHABET[number // 36**place % 36] for place in range(9))


def _is_writable(text: str) -> bool:
    """Whether the text can be sent at all: a lone surrogate has no UTF-8 form."""
    return not any("\ud800" <= character <= "\udfff" for character in text)
