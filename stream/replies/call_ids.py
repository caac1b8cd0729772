"""Call ids in replies: which ids a provider refuses, and which id replaces a refused one.

Decides the id of each call of one turn. An id that the provider accepts stays unchanged. An id that an earlier turn
used is replaced by the one that admission chose (`reply_id`). A missing, refused or repeated id is replaced, in the
call and in its result, by a digest of (turn id, original id, occurrence): it is the same in every process and after any
restart, and never equal to another id of the turn. Must not know messages or other turns.
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
"""Which ids replies use. ``paired``: each id once in a history, in a form that the dialect's own service accepts.
``nine``: the same in the form of Mistral's servers, nine letters or digits. ``as_they_came``: the original ids, for a
provider that stores the calls itself (``previous_response_id``)."""


@dataclass(frozen=True, slots=True)
class IdRule:
    """What a provider requires of a call id.

    Attributes:
        max_length: the largest number of characters; None where no limit is known.
        pattern: the whole id must match it; None where any id is accepted that can be written as UTF-8.
        pairs: False where calls and results are matched by order and name. Ids then stay unchanged, missing ones too.
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
        """The rule under the form that the harness chose."""
        if form == "paired" or not self.pairs:
            return self
        return _NINE if form == "nine" else _AS_THEY_CAME


_NINE = IdRule(max_length=9, pattern=re.compile("[a-zA-Z0-9]{9}"))
_AS_THEY_CAME = IdRule(pairs=False)


def outbound_ids(
    rule: IdRule, turn_id: str | None, call_ids: Sequence[str | None], reply_ids: Sequence[str | None] = ()
) -> tuple[str | None, ...]:
    """The ids to send for all calls of one turn, in call order; the index is the call's position.

    The first of several equal ids stays unchanged. An id is None only where ``rule.pairs`` is False.

    Args:
        reply_ids: the ids that admission chose, None for each call whose id no earlier turn used; empty for none.
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
    """A new id: 29 plain characters, which nearly every provider accepts, or nine letters for the others."""
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
    raise AssertionError("unreachable: count() is endless")


def _nine(number: int) -> str:
    return "".join(_ALPHABET[number // 36**place % 36] for place in range(9))


def _is_writable(text: str) -> bool:
    """Whether the text can be written as UTF-8; a lone surrogate cannot."""
    return not any("\ud800" <= character <= "\udfff" for character in text)
