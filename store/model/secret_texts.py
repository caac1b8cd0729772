"""Every spelling of a call's secrets, and texts and JSON values without them.

Decides what counts as a secret in a text that others wrote: the text whole or a long part of it, in any case, however
blanks and line ends were folded, quoted, escaped or encoded. Scrub first, fold and cut afterwards: a part that a cut
has left may be too short to be known. Pure.
"""

from __future__ import annotations

import base64
import html
import json
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import Any
from urllib.parse import quote, quote_plus

MASK = "***"
WHOLE = 8
"""Up to so many characters a secret counts only whole: parts of it are parts of common words."""
PART = 12
"""So many characters in a row give a secret away, whatever its length; half of a shorter one, but at least `WHOLE`."""
_SHORTEST_CODED = 4
_SHORTEST_IN_BASE64 = 6
"""Of less, three or four letters are left, which turn up in any picture."""
_LONGEST_CODED = 16_384
_LONGEST_NUMBER = 64
_SHORTEST_LINE = 6
_PLACES_KEPT = 64
_MOST_COMPARED = 4_000_000
"""Characters of one text that are compared with spellings, about half a second. A model may choose secret and text so
that it takes hours; what needs more is masked as a whole."""
# What encodeURI and encodeURIComponent of JavaScript leave as it is, besides letters and digits.
_URI, _COMPONENT = ";,/?:@&=+$-_.!~*'()#", "-_.!~*'()"


@dataclass(frozen=True)
class Secrets:
    """The secrets of one call.

    Attributes:
        texts: the secrets in clear, never shown.
        declared: the tool has secret fields, whether or not this call fills them; true-like then.
    """

    texts: tuple[str, ...] = field(default=(), repr=False)
    declared: bool = False

    @classmethod
    def of(cls, values: Iterable[Any], *, declared: bool = True) -> Secrets:
        """These JSON values, in clear: each text and number in them is a secret."""
        found = (text for value in values for text in _texts(value) if text.strip())
        return cls(tuple(dict.fromkeys(found)), declared)

    def __bool__(self) -> bool:
        return self.declared or bool(self.texts)

    def scrub(self, words: str) -> str:
        """The words with every secret, and every long part of one, replaced by ``***``."""
        return self._finder.masked(words) if self.texts and words else words

    def scrub_value(self, value: Any) -> Any:
        """A copy of a JSON value without secrets: in texts, in names of members, and as numbers."""
        if not self.texts:
            return value
        match value:
            case str():
                return self.scrub(value)
            case dict():
                return {self.scrub(str(name)): self.scrub_value(item) for name, item in value.items()}
            case list() | tuple():
                return [self.scrub_value(item) for item in value]
            case bool() | None:
                return value
            case int() | float():
                return MASK if self._is_secret(value) else value
            case _:
                return value

    def _is_secret(self, number: int | float) -> bool:
        exact = _exact(str(number))
        if exact is not None and abs(exact) in self._numbers:
            return True
        digits = str(number)
        return len(digits) > WHOLE and self.scrub(digits) != digits

    @cached_property
    def _numbers(self) -> frozenset[Decimal]:
        return frozenset(abs(number) for text in self.texts if (number := _exact(text)) is not None)

    @cached_property
    def _finder(self) -> _Finder:
        return _Finder(spelling for text in self.texts for spelling in _spellings(text))


NO_SECRETS = Secrets()


class _Finder:
    """Finds every run of a text that it has in common with a spelling and that is long enough to give it away.

    Blanks count for nothing and letters are compared in lower case. Of each spelling every k-th piece of k characters
    is known; a common run of 2k - 1 holds one of them whole, and is measured from there.
    """

    def __init__(self, spellings: Iterable[str]) -> None:
        self._pieces: dict[int, dict[str, list[tuple[_Spelling, int]]]] = {}
        for spelling in {_Spelling.of(text) for text in spellings}:
            size = (spelling.least + 1) // 2
            for start in range(0, len(spelling.text) - size + 1, size):
                places = self._pieces.setdefault(size, {}).setdefault(spelling.text[start : start + size], [])
                if len(places) < _PLACES_KEPT:
                    places.append((spelling, start))

    def masked(self, words: str) -> str:
        try:
            found = list(self._runs(_squeezed(words)))
        except _TooMuchToCompare:
            return MASK
        if not found:
            return words
        places = [place for place, mark in enumerate(words) for _ in _squeezed(mark)]
        kept, done = [""], 0
        for start, end, is_tight in sorted(found):
            first, behind = places[start], places[end - 1] + 1
            if is_tight and behind - first > end - start:
                continue  # letters of several words
            if first > done or len(kept) == 1:
                kept += [words[done:first], MASK]
            done = max(done, behind)
        return "".join((*kept, words[done:]))

    def _runs(self, squeezed: str) -> Iterator[_Run]:
        left_to_compare = _MOST_COMPARED
        for size, pieces in self._pieces.items():
            at, last = 0, len(squeezed) - size
            while at <= last:
                found, compared = _around(squeezed, at, pieces.get(squeezed[at : at + size], ()), left_to_compare)
                left_to_compare -= compared
                yield from found
                at = max(at + 1, max((behind for _, behind, _ in found), default=0) - size + 1)


_Run = tuple[int, int, bool]
"""From where to where, and whether it counts only without blanks in between."""


class _TooMuchToCompare(Exception):
    """Text and secrets agree in so many places that nobody can say in time where."""


@dataclass(frozen=True, slots=True)
class _Spelling:
    """One spelling, squeezed. `least` of its characters in a row give it away; `is_tight`: only where no blank is in
    between."""

    text: str
    least: int
    is_tight: bool

    @classmethod
    def of(cls, text: str) -> _Spelling:
        squeezed = _squeezed(text)
        least = len(squeezed) if len(squeezed) <= WHOLE else min(PART, max(WHOLE, len(squeezed) // 2))
        return cls(squeezed, least, len(squeezed) <= WHOLE and not any(map(str.isspace, text)))

    def reach(self, words: str, at: int, start: int) -> tuple[int, int]:
        """How far words and spelling agree, to the left and to the right of a place in each."""
        left, most = 0, min(at, start)
        while left < most and words[at - left - 1] == self.text[start - left - 1]:
            left += 1
        right, most = 0, min(len(words) - at, len(self.text) - start)
        while right < most and words[at + right] == self.text[start + right]:
            right += 1
        return left, right


def _around(
    words: str, at: int, places: Iterable[tuple[_Spelling, int]], left_to_compare: int
) -> tuple[list[_Run], int]:
    """The runs around a place of the words that are long enough, if it is one of these places of spellings, and how
    many characters were compared."""
    found, compared = [], 0
    for spelling, start in places:
        left, right = spelling.reach(words, at, start)
        compared += left + right
        if compared > left_to_compare:
            raise _TooMuchToCompare
        if left + right >= spelling.least:
            found.append((at - left, at + right, spelling.is_tight))
    return found, compared


def _squeezed(text: str) -> str:
    return "".join(text.split()).lower()


def _texts(value: Any) -> list[str]:
    match value:
        case str():
            return [value]
        case bool() | None:
            return []
        case int() | float():
            return [str(value)]
        case dict():
            return [text for item in value.values() for text in _texts(item)]
        case list():
            return [text for item in value for text in _texts(item)]
        case _:
            return []


def _spellings(secret: str) -> Iterator[str]:
    yield secret
    lines = secret.splitlines()
    for text in (secret, *(line for line in lines if len(lines) > 1 and _SHORTEST_LINE <= len(line.strip()) <= PART)):
        yield text
        if len(text) >= _SHORTEST_CODED:
            yield from _coded(text[:_LONGEST_CODED])


def _coded(text: str) -> Iterator[str]:
    escaped = {_json(text), _ascii_json(text), repr(text)[1:-1], ascii(text)[1:-1]}
    for once in escaped:
        yield from (once, _json(once), repr(once)[1:-1])
    raw = text.encode("utf-8", "surrogatepass")
    yield from (raw.hex(":"), base64.b32encode(raw).decode().rstrip("="), *_grouped(text))
    yield from (repr(raw)[2:-1], raw.hex(), html.escape(text), html.escape(text, quote=False), shlex.quote(text))
    yield from (quote(raw), quote(raw, safe=""), quote_plus(raw), quote(raw, safe=_URI), quote(raw, safe=_COMPONENT))
    yield from (quote(once, errors="replace") for once in escaped if once != text)
    for shift in range(
        3 if len(raw) >= _SHORTEST_IN_BASE64 else 0
    ):  # where it stands inside of what was encoded, as the password in "user:password"
        whole = base64.b64encode(bytes(shift) + raw).decode().rstrip("=")
        cut = whole[(0, 2, 3)[shift] : len(whole) - ((shift + len(raw)) % 3 > 0)]
        yield from (cut, cut.replace("+", "-").replace("/", "_"))


def _grouped(text: str) -> Iterator[str]:
    """A number as people write it: in thousands, or in fours as on a card. (Blanks count for nothing anyway.)"""
    if text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER:
        thousands = f"{int(text):,}"
        yield from (thousands, *(thousands.replace(",", mark) for mark in "._'"))
        yield "-".join(text[at : at + 4] for at in range(0, len(text), 4))


def _json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _ascii_json(text: str) -> str:
    return json.dumps(text)[1:-1]


def _exact(text: str) -> Decimal | None:
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
