"""What workers publish about their tools, read and written."""

from __future__ import annotations

import json
from typing import Any, Literal, NamedTuple

from ..model.keys import Namespace
from ..model.rates import Rate
from ..model.specs import Published, ToolSpec
from .operation import Invocation, invocation, number
from .script_arguments import Each, arguments_of, repeated


@repeated
class PublishedToolArgs(NamedTuple):
    name: str
    version: str
    spec: str
    cap: int | Literal[""]
    rate: str


@arguments_of("publish")
class PublishArgs(NamedTuple):
    tools: Each[PublishedToolArgs]


@arguments_of("tools")
class ToolsArgs(NamedTuple):
    pass


def publish(space: Namespace, specs: list[ToolSpec]) -> Invocation[tuple[int, int]]:
    """Publish specs and limits; returns the specs' version number and how many held calls were freed by it."""
    tools = [
        PublishedToolArgs(
            name=spec.name,
            version=spec.version,
            spec=spec.to_json(),
            cap=_cap(spec.concurrency),
            rate=Rate.parse(spec.rate).stored if spec.rate else "",
        )
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
