"""Rich results: a value made of text, JSON, image and file parts, and a flag that says the tool reports an error.

Decides the stored form, which is plain JSON: ``{"$parts": [part, ...]}``, with ``"is_error": true`` where the flag is
set. A part is ``{"type": "text", "text"}``, ``{"type": "json", "value"}``, or ``{"type": "image" | "file",
"media_type", "data" | "url", "name"?}`` with ``data`` in base64. A value of exactly this shape is parts, however it
was made; any other value is itself. Knows no Redis and no provider.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

_MARK = "$parts"


@dataclass(frozen=True, slots=True)
class TextPart:
    """Text for the model."""

    text: str

    def to_json(self) -> dict[str, Any]:
        """The stored form."""
        return {"type": "text", "text": self.text}


@dataclass(frozen=True, slots=True)
class JsonPart:
    """Any JSON value."""

    value: Any

    def to_json(self) -> dict[str, Any]:
        """The stored form."""
        return {"type": "json", "value": self.value}


@dataclass(frozen=True, slots=True)
class _Media:
    """Bytes or the place where they are: exactly one of ``data`` (base64) and ``url``.

    Raises:
        ValueError: neither or both were given.
    """

    media_type: str
    data: str | None = None
    url: str | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        if (self.data is None) == (self.url is None):
            raise ValueError("a part holds either data or a url")

    @property
    def size(self) -> int | None:
        """The number of bytes held; None where there is only a url."""
        return None if self.data is None else len(self.data.rstrip("=")) * 3 // 4

    def _fields(self, kind: str) -> dict[str, Any]:
        fields = {"type": kind, "media_type": self.media_type, "data": self.data, "url": self.url, "name": self.name}
        return {name: value for name, value in fields.items() if value is not None}


@dataclass(frozen=True, slots=True)
class ImagePart(_Media):
    """A picture, for example ``image/png``."""

    @classmethod
    def from_bytes(cls, media_type: str, content: bytes) -> ImagePart:
        """A part that holds these bytes, base64."""
        return cls(media_type, data=base64.b64encode(content).decode("ascii"))

    def to_json(self) -> dict[str, Any]:
        """The stored form."""
        return self._fields("image")


@dataclass(frozen=True, slots=True)
class FilePart(_Media):
    """Any other file, for example ``application/pdf``; ``name`` is shown to the model where it can be."""

    @classmethod
    def from_bytes(cls, media_type: str, content: bytes, *, name: str | None = None) -> FilePart:
        """A part that holds these bytes, base64."""
        return cls(media_type, data=base64.b64encode(content).decode("ascii"), name=name)

    def to_json(self) -> dict[str, Any]:
        """The stored form."""
        return self._fields("file")


Part = TextPart | JsonPart | ImagePart | FilePart


@dataclass(frozen=True, slots=True)
class Parts:
    """What a handler returns for a rich result: ``Parts((TextPart("two pages"), FilePart(...)))``.

    Attributes:
        is_error: the tool ran to its end and reports an error of its own. The call is a success for the store (it is
            settled and replayed); the model is told that the tool reported an error.
    """

    parts: tuple[Part, ...]
    is_error: bool = False

    def to_json(self) -> dict[str, Any]:
        """The stored form."""
        stored: dict[str, Any] = {_MARK: [part.to_json() for part in self.parts]}
        return stored | {"is_error": True} if self.is_error else stored

    @classmethod
    def find(cls, value: Any) -> Parts | None:
        """The parts that a stored value stands for; None where it is an ordinary value."""
        if not isinstance(value, dict) or not value.keys() <= {_MARK, "is_error"}:
            return None
        listed, is_error = value.get(_MARK), value.get("is_error", False)
        if not isinstance(listed, list) or not isinstance(is_error, bool):
            return None
        found = [_find_part(item) for item in listed]
        parts = tuple(part for part in found if part is not None)
        return cls(parts, is_error) if len(parts) == len(found) else None


def _find_part(item: Any) -> Part | None:
    match item:
        case {"type": "text", "text": str(text)} if len(item) == 2:
            return TextPart(text)
        case {"type": "json", "value": value} if len(item) == 2:
            return JsonPart(value)
        case {"type": "image" | "file" as kind} if _is_media(item):
            fields = {name: text for name, text in item.items() if name != "type"}
            return ImagePart(**fields) if kind == "image" else FilePart(**fields)
        case _:
            return None


def _is_media(item: dict[str, Any]) -> bool:
    """Whether these are the fields of a media part: its type, one source, perhaps a name; texts all."""
    known = item.keys() <= {"type", "media_type", "data", "url", "name"} and "media_type" in item
    return known and ("data" in item) != ("url" in item) and all(isinstance(text, str) for text in item.values())
