"""The tools of one code base, by name: what a worker serves and publishes.

Decides which tool a name stands for, and holds the hook that permits calls. Runs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar, Unpack, overload

from ..store.specs import ToolSpec
from .authorize import Hook
from .errors import BadTool
from .tool import Handler, Tool, ToolOptions

H = TypeVar("H", bound=Hook)


class Registry:
    """Tools by name. Fill it at import; a worker only reads it."""

    def __init__(self) -> None:
        self._tools: dict[str, Tool] = {}
        self._hook: Hook | None = None

    @overload
    def tool(self, function: Handler, /) -> Tool: ...

    @overload
    def tool(self, /, **options: Unpack[ToolOptions]) -> Callable[[Handler], Tool]: ...

    def tool(
        self, function: Handler | None = None, /, **options: Unpack[ToolOptions]
    ) -> Tool | Callable[[Handler], Tool]:
        """Register a function as a tool, with options (see `ToolOptions`) or without.

        Raises:
            BadTool: its signature, schema or options cannot work, or the name is taken.
        """
        if function is not None:
            return self.add(Tool(function, options))
        return lambda handler: self.add(Tool(handler, options))

    def add(self, tool: Tool) -> Tool:
        """Take a tool that was made elsewhere."""
        if tool.name in self._tools:
            raise BadTool(f"tool {tool.name}: there is one of this name already")
        self._tools[tool.name] = tool
        return tool

    def include(self, other: Registry) -> None:
        """Take all tools of another registry; each keeps its own registry's hook out of this one."""
        for tool in other:
            self.add(tool)

    def authorize(self, hook: H) -> H:
        """Declare the hook that permits each call before it is entered: it gets the call and its arguments, and
        returns `Allow`, `Deny(reason)` or `Ask(reason)`, or None or a bool for short."""
        if self._hook is not None:
            raise BadTool("there is an authorize hook already")
        self._hook = hook
        return hook

    @property
    def hook(self) -> Hook | None:
        return self._hook

    def find(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def specs(self) -> list[ToolSpec]:
        """What is published, in order of registration."""
        return [tool.spec for tool in self]

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools
