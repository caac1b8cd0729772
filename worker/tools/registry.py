"""The tools of one code base, by name: what a worker serves and publishes.

Decides which tool a name stands for, and holds the hook that permits calls. Runs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar, Unpack, overload

from ...store.model.dialects import Dialect
from ...store.model.specs import ToolSpec
from .authorize import Hook, Rules
from .definitions import definitions
from .errors import BadTool
from .options import ToolOptions
from .tool import Tool

H = TypeVar("H", bound=Hook)
P = ParamSpec("P")
R = TypeVar("R")


def rules_of(tool: Tool, tools: object = None) -> Rules:
    """What has to be asked before a tool runs where a worker serves `tools`; else in the registry that it came from."""
    place = tools if isinstance(tools, Registry) else tool.home
    return place.rules(tool) if place else Rules(tool.spec.approval)


class Registry:
    """Tools by name. Fill it at import; a worker only reads it."""

    def __init__(self) -> None:
        self._tools: dict[str, Tool] = {}
        self._sources: dict[str, Registry] = {}
        self._hook: Hook | None = None

    @overload
    def tool(self, function: Callable[P, R], /) -> Tool[P, R]: ...

    @overload
    def tool(self, /, **options: Unpack[ToolOptions]) -> Callable[[Callable[P, R]], Tool[P, R]]: ...

    def tool(
        self, function: Callable[P, R] | None = None, /, **options: Unpack[ToolOptions]
    ) -> Tool[P, R] | Callable[[Callable[P, R]], Tool[P, R]]:
        """Register a function as a tool, with options (see `ToolOptions`) or without.

        Raises:
            BadTool: its signature, schema or options cannot work, or the name is taken.
        """

        def declare(handler: Callable[P, R]) -> Tool[P, R]:
            return self.add(Tool(handler, options))

        return declare if function is None else declare(function)

    def add(self, tool: Tool[P, R]) -> Tool[P, R]:
        """Take a tool that was made elsewhere. One of another registry keeps that one's hook."""
        return self._take(tool, tool.home)

    def include(self, other: Registry) -> None:
        """Take all tools of another registry. The hook of that one still permits them, and that of this one as well."""
        for tool in other:
            self._take(tool, other)

    def authorize(self, hook: H) -> H:
        """Declare the hook that permits each call before it is entered, of all tools here.

        It gets the call and a copy of its arguments, and returns, or is awaited for, `Allow()`, `Deny(reason)` or
        `Ask(reason)`; None or True stand for `Allow()`, False for `Deny()`. Any other answer denies, and so does an
        exception, or a wait past the tool's run limit.

        Raises:
            BadTool: it cannot be called, or there is one already.
        """
        if not callable(hook):
            raise BadTool(f"an authorize hook is a function, not {hook!r}")
        if self._hook is not None:
            raise BadTool("there is an authorize hook already")
        self._hook = hook
        return hook

    def rules(self, tool: Tool) -> Rules:
        """What has to be asked before this tool, which is one of these, runs."""
        return Rules(tool.spec.approval, tuple(self._hooks(tool.name)))

    def _hooks(self, name: str) -> Iterator[Hook]:
        if source := self._sources.get(name):
            yield from source._hooks(name)
        if self._hook is not None:
            yield self._hook

    def _take(self, tool: Tool[P, R], source: Registry | None) -> Tool[P, R]:
        if tool.name in self._tools:
            raise BadTool(f"tool {tool.name}: there is one of this name already")
        self._tools[tool.name] = tool
        if source is not None:
            self._sources[tool.name] = source
        tool.home = tool.home or self
        return tool

    def find(self, name: str) -> Tool | None:
        """The tool of this name; None where none is registered."""
        return self._tools.get(name)

    def specs(self) -> list[ToolSpec]:
        """What is published, in order of registration."""
        return [tool.spec for tool in self]

    def definitions(self, dialect: Dialect) -> Any:
        """The tools in the shape of a dialect's requests, for a harness that has the registry at hand.

        Returns:
            A `toolonce.stream.ToolDefinitions`, a list; the same as `Client.tools` gives once they are published.

        Raises:
            UnknownDialect: no such dialect.
            ToolNotOffered: the provider would refuse a request with one of them; the message says why.
        """
        return definitions(self.specs(), dialect)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools
