"""Loads the Lua scripts and says how each is called: one operation a file, preludes named by its `uses` line.

Pure: reads package data once, talks to no server. Nothing else in the project builds an EVALSHA.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Generic, TypeVar

T_co = TypeVar("T_co", covariant=True)
Arg = str | bytes | int | float


@dataclass(frozen=True, slots=True)
class Script:
    """One script: its text as the server gets it, and the digest that EVALSHA names."""

    name: str
    text: str
    sha: str


@dataclass(frozen=True, slots=True)
class Invocation(Generic[T_co]):
    """One run of one script, not yet sent: what to send and how to read the reply.

    Every script answers the same when it comes twice, so an invocation may be sent again after a lost reply.
    """

    script: Script
    root: str
    args: tuple[Arg, ...]
    read: Callable[[Any], T_co]

    def command(self) -> tuple[Arg, ...]:
        return ("EVALSHA", self.script.sha, 1, self.root, *self.args)

    def full_command(self) -> tuple[Arg, ...]:
        """For a server that does not know the script yet (NOSCRIPT): the text itself."""
        return ("EVAL", self.script.text, 1, self.root, *self.args)


@cache
def load(name: str) -> Script:
    """Read `lua/<name>.lua` with its preludes.

    Raises:
        FileNotFoundError: there is no such script; a broken installation.
    """
    body = _source(name)
    lines = body.splitlines()
    shebang = f"{lines[0]}\n" if lines[0].startswith("#!") else ""
    preludes = next(line for line in lines if line.startswith("-- uses:")).removeprefix("-- uses:").split()
    text = shebang + "".join(_source(f"_{prelude}") for prelude in preludes) + body.removeprefix(shebang)
    return Script(name, text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


def names() -> tuple[str, ...]:
    """All operations, preludes left out."""
    found = (path.name for path in files(__package__).joinpath("lua").iterdir())
    return tuple(sorted(name.removesuffix(".lua") for name in found if name.endswith(".lua") and name[0] != "_"))


def _source(name: str) -> str:
    return files(__package__).joinpath("lua", f"{name}.lua").read_text("utf-8")


def text(value: bytes | None) -> str | None:
    """A reply's string as text; absent stays absent."""
    return None if value is None else value.decode()


def number(value: bytes | int | None, default: int = 0) -> int:
    """A reply's number; Redis hands hash fields back as strings."""
    return default if value is None or value == b"" else int(value)
