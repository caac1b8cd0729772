"""What workers publish about their tools, read and written, and the caps that people or tools set."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from ..model.keys import Namespace
from ..model.specs import Published, ToolSpec
from .operation import Invocation, invocation, number
from .script_arguments import Each, arguments_of, repeated


@repeated
class PublishedToolArgs(NamedTuple):
    name: str
    version: str
    spec: str
    cap: int | Literal[""]


@arguments_of("publish")
class PublishArgs(NamedTuple):
    tools: Each[PublishedToolArgs]


@arguments_of("tools")
class ToolsArgs(NamedTuple):
    pass


@repeated
class CapArgs(NamedTuple):
    name: str
    cap: int | Literal[""]


@arguments_of("limit")
class LimitArgs(NamedTuple):
    caps: Each[CapArgs]


def publish(space: Namespace, specs: list[ToolSpec]) -> Invocation[tuple[int, int]]:
    """Publish specs and limits; returns the specs' version number and how many held calls were freed by it."""
    tools = [
        PublishedToolArgs(name=spec.name, version=spec.version, spec=spec.to_json(), cap=_cap(spec.concurrency))
        for spec in specs
    ]
    return invocation(space.root, PublishArgs(tools=tools), lambda reply: (int(reply[0]), int(reply[1])))


def _cap(cap: int | None) -> int | Literal[""]:
    return "" if cap is None else cap


def published(space: Namespace) -> Invocation[Published]:
    """Read the newest spec of every tool."""

    def read(reply: list[Any]) -> Published:
        tools: dict[str, ToolSpec] = {}
        unreadable: set[str] = set()
        for text in filter(None, reply[1:]):
            try:
                spec = ToolSpec.from_json(text)
                tools[spec.name] = spec
            except (ValueError, TypeError):
                unreadable.add(_name_in(text))
        return Published(number(reply[0]), tools, frozenset(unreadable))

    return invocation(space.root, ToolsArgs(), read)


def _name_in(text: bytes) -> str:
    """The tool's name in a spec that cannot be read; "" where not even that can."""
    try:
        return str(json.loads(text)["name"])
    except (ValueError, TypeError, KeyError):
        return ""


def limit(space: Namespace, caps: Mapping[str, int | None]) -> Invocation[int]:
    """Set caps, most calls at once over all workers, by ``tool:<name>``, ``tenant:<name>`` or ``tenant:*``; None
    lifts one. Returns how many waiting calls were woken. A tool's cap is set again by each `publish`.

    Raises:
        ValueError: another name, or a negative cap.
    """
    for name, cap in caps.items():
        if not name.startswith(("tool:", "tenant:")):
            raise ValueError(f"limit {name!r}: a limit is tool:<name> or tenant:<name>, tenant:* for all others")
        if cap is not None and cap < 0:
            raise ValueError(f"limit {name!r}: a cap is at least 0; None lifts it")
    args = LimitArgs(caps=[CapArgs(name=name, cap=_cap(cap)) for name, cap in caps.items()])
    return invocation(space.root, args, int)
