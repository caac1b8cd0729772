"""The answer to one call for any provider: its parts, its error flag, and the same as plain text.

Decides what a stored outcome means for the model. Must not know wire formats: the reply modules write the messages.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ...store.model.outcomes import Outcome
from ...store.model.parts import FilePart, ImagePart, JsonPart, Part, Parts, TextPart
from ...store.model.states import State
from .model_text import is_error, words


@dataclass(frozen=True, slots=True)
class CallReply:
    """The answer to one call.

    Attributes:
        call_id: the id to send; None only where the dialect matches by order and the call had none.
        parts: what the model sees; images and files only as the tool returned them.
        is_error: the error flag, for providers that have one; the parts state the error as well.
        echo: other fields of the call that the provider expects back.
    """

    call_id: str | None
    tool: str
    kind: str
    parts: tuple[Part, ...]
    is_error: bool
    echo: dict[str, Any]

    @property
    def text(self) -> str:
        """All parts as one text, for fields that hold text only."""
        return text_of(self.parts)


def answer(outcome: Outcome, call_id: str | None, *, echoed: bool = True) -> CallReply:
    """The answer for an outcome, with the call id to send; without the echo fields unless ``echoed``."""
    parts, flag = _parts(outcome)
    return CallReply(call_id, outcome.tool, outcome.kind, parts, flag, outcome.echo if echoed else {})


def for_model(outcome: Outcome) -> str:
    """What the model is told about this call, as plain text. Replies contain the same in the provider's form."""
    return text_of(_parts(outcome)[0])


def text_of(parts: Iterable[Part]) -> str:
    """Parts as text; an image or file is only named."""
    return "\n".join(_part_text(part) for part in parts)


def json_text(value: Any) -> str:
    """A JSON value as compact text; integers keep all digits."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def is_plain(value: Any, levels: int = 32) -> bool:
    """Whether every parser of a service keeps the JSON value exactly: integers of a double, and few nested levels."""
    match value:
        case dict() | list():
            members = value.values() if isinstance(value, dict) else value
            return levels > 0 and all(is_plain(member, levels - 1) for member in members)
        case int():
            return abs(value) <= 2**53
        case _:
            return True


def sendable(value: Any) -> Any:
    """The JSON value in a form that every server can parse.

    Split surrogate pairs are joined and lone surrogates become U+FFFD: they have no UTF-8 form, and a single one makes
    a provider refuse the whole request. A number that is not finite becomes a string.
    """
    match value:
        case str():
            return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case float() if not math.isfinite(value):
            return str(value)
        case dict():
            return {sendable(name): sendable(member) for name, member in value.items()}
        case list() | tuple():
            return [sendable(member) for member in value]
        case _:
            return value


def _parts(outcome: Outcome) -> tuple[tuple[Part, ...], bool]:
    if outcome.state is not State.SUCCEEDED or outcome.conflict:
        return (TextPart(words(outcome)),), is_error(outcome)
    if outcome.marks.get("forgotten"):
        return (TextPart(_forgotten(outcome.marks)),), False
    rich = Parts.find(outcome.value)
    if rich is None:
        return (_plain(outcome.value), *_notes(outcome)), False
    warning = (TextPart("The tool ran and reports an error:"),) if rich.is_error else ()
    return (*warning, *rich.parts, *_notes(outcome)), rich.is_error


def _forgotten(marks: dict[str, Any]) -> str:
    """The note for a result that retention removed: when the call succeeded, and since when the result is gone."""
    if "forgotten_at" not in marks:
        return "Note: the call succeeded; its result is no longer kept. Do not call it again."
    settled, gone = (_moment(marks[name]) for name in ("settled_at", "forgotten_at"))
    return (
        f"Note: the call succeeded at {settled}; its result of {marks['size']} bytes is no longer kept since {gone}. "
        "Do not call it again."
    )


def _moment(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _plain(value: Any) -> Part:
    return TextPart(value) if isinstance(value, str) else JsonPart(value)


def _notes(outcome: Outcome) -> Iterable[Part]:
    """Notes for the model on a result that could not be stored as returned, although the call succeeded."""
    if outcome.marks.get("truncated"):
        size = f" of {outcome.marks['size']} bytes" if "size" in outcome.marks else ""
        yield TextPart(f"Note: the call succeeded; its result{size} was too large to keep whole. Do not call it again.")
    if outcome.marks.get("lossy"):
        yield TextPart("Note: the call succeeded; its result was not plain JSON, and this is its nearest form.")


def _part_text(part: Part) -> str:
    match part:
        case TextPart(text):
            return text
        case JsonPart(value):
            return json_text(value)
        case ImagePart():
            return _media_text("image", part)
        case FilePart():
            return _media_text("file", part)


def _media_text(kind: str, part: ImagePart | FilePart) -> str:
    where = f"at {part.url}" if part.url is not None else f"of {part.size} bytes, not shown here"
    name = f" {part.name}" if part.name else ""
    return f"[{kind}{name} ({part.media_type}) {where}]"
