"""What a connection runs: a script (Lua, one operation a file, preludes named by its `uses` line), or plain commands.

Pure: reads package data once, talks to no server. Nothing else in the project builds an EVALSHA; what stands in ARGV is
declared beside each function that asks for an `invocation`, see `script_arguments`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from textwrap import fill, indent
from typing import Any, Generic, TypeVar

from ..model.record import ANSWER_FIELDS, FORGOTTEN_FIELDS, PAGE_FIELDS, RUN_FIELDS
from .script_arguments import DECLARED
from .script_arguments import Arg as Arg

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
_LUA = files("toolonce.store").joinpath("lua")
_USES = "-- uses:"
_FUNCTION = re.compile(r"^(?:local )?function (?P<name>\w+)\(.*?^end\n", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"--.*")
_WORD = re.compile(r"\w+")


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


def invocation(root: str, arguments: tuple[Any, ...], read: Callable[[Any], T]) -> Invocation[T]:
    """The script that these arguments are declared for, with them.

    Args:
        root: of the namespace; the one key of every script.

    Raises:
        KeyError: `arguments` is no tuple that `script_arguments.arguments_of` has declared.
    """
    declared = DECLARED[type(arguments)]
    return Invocation(load(declared.script), root, declared.flat(arguments), read)


@dataclass(frozen=True, slots=True)
class Query(Generic[T_co]):
    """Plain commands that only read, not yet sent, and how to read their replies, which come in the same order.

    They are sent together in one round trip: each sees the store at one moment, all of them not at the same one. They
    look up what is stored about calls, the most frequent question. A script would cost the server twice as much, to
    build its functions and to turn each field into a value of Lua and back.
    """

    commands: Sequence[tuple[Arg, ...]]
    read: Callable[[Sequence[Any]], T_co]


@dataclass(frozen=True, slots=True)
class Acknowledged(Generic[T_co]):
    """A script that writes, and in the same round trip, on the same connection, WAIT: how many replicas have it.

    Attributes:
        replicas, wait_ms: WAIT answers once so many replicas have the write, or after this time.
        read: from the script's reply and the number of replicas that have its write.
    """

    invocation: Invocation[Any]
    replicas: int
    wait_ms: int
    read: Callable[[Any, int], T_co]

    @property
    def wait(self) -> tuple[Arg, ...]:
        return ("WAIT", self.replicas, self.wait_ms)


Operation = Invocation[T] | Query[T] | Acknowledged[T]
"""What a connection runs; each may be sent again after a lost reply."""


@cache
def load(name: str) -> Script:
    """Read `lua/<name>.lua` with its preludes.

    Raises:
        FileNotFoundError: there is no such script; a broken installation.
    """
    body = _source(name)
    lines = body.splitlines()
    shebang = f"{lines[0]}\n" if lines[0].startswith("#!") else ""
    script = body.removeprefix(shebang)
    text = shebang + _preludes(_uses(body), script) + script
    return Script(name, text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


def names() -> tuple[str, ...]:
    """All operations, preludes left out."""
    found = (path.name for path in _LUA.iterdir())
    return tuple(sorted(name.removesuffix(".lua") for name in found if name.endswith(".lua") and name[0] != "_"))


def _preludes(words: list[str], script: str) -> str:
    """The preludes without the functions that the script never comes to: one that is made in Lua, and collected
    again, costs as much time as a command does, called or not.

    A prelude in brackets is itself a function; when it is first called it makes the prelude's, and hands them out.
    A prelude that uses others brings them along, each once: in brackets too, unless the script has them already.
    """
    sources = _with_their_own(words)
    used = _used("".join(sources.values()), script)
    text = ""
    for word, source in sources.items():
        kept = _FUNCTION.sub(lambda found: found[0] if found["name"] in used else "", source)
        text += _on_demand(word.strip("()"), kept) if word.startswith("(") else kept
    return text


def _with_their_own(words: list[str]) -> dict[str, str]:
    """Each word of a script's `uses` line, with the text of that prelude and, before it, of those that it uses."""
    there: set[str] = set()
    sources: dict[str, str] = {}
    for word in words:
        _add_prelude(word, there, sources)
    return sources


def _add_prelude(word: str, there: set[str], sources: dict[str, str]) -> None:
    """A prelude in brackets holds those that it uses; others come after theirs, of which some may be in brackets."""
    name = word.strip("()")
    if name in there:
        return
    if word.startswith("("):
        sources[word] = _source_of_prelude(name, there)
        return
    there.add(name)
    for other in _uses(_source(f"_{name}")):
        _add_prelude(other, there, sources)
    sources[word] = _source(f"_{name}")


def _source_of_prelude(word: str, there: set[str]) -> str:
    name = word.strip("()")
    if name in there:
        return ""
    there.add(name)
    source = _source(f"_{name}")
    whole = "".join(_source_of_prelude(other, there) for other in _uses(source)) + source
    return _on_demand(name, whole) if word.startswith("(") else whole


def _uses(source: str) -> list[str]:
    named = (line.removeprefix(_USES) for line in source.splitlines() if line.startswith(_USES))
    return next(named, "").split()


def _on_demand(name: str, source: str) -> str:
    """Indented, since a function of functions may stand in another one."""
    made = ",\n".join(f"{function} = {function}" for function in _functions(source))
    return (
        f"local {name}_made\nlocal function {name}()\n  if {name}_made then return {name}_made end\n"
        f"{indent(source, '  ')}  {name}_made = {{\n{indent(made, '    ')}\n  }}\n  return {name}_made\nend\n"
    )


def _used(preludes: str, script: str) -> set[str]:
    bodies, used, unread = _functions(preludes), set[str](), [_FUNCTION.sub("", preludes), script]
    while unread:
        for word in _WORD.findall(_COMMENT.sub("", unread.pop())):
            if word in bodies and word not in used:
                used.add(word)
                unread.append(bodies[word])
    return used


def _functions(source: str) -> dict[str, str]:
    """The functions at the left margin, by name."""
    return {found["name"]: found[0] for found in _FUNCTION.finditer(source)}


def _source(name: str) -> str:
    if name == "_record_fields":
        return _record_fields()
    return _LUA.joinpath(f"{name}.lua").read_text("utf-8")


def _record_fields() -> str:
    """The prelude that is no file: the lists of fields that `model/record.py` declares, as calls of one command."""
    return f"""-- Prelude: lists of the record's fields, made from model/record.py, in the order that Python reads.
{_lua("answer(call)", "return fields(call", ANSWER_FIELDS)}
local function whole_record(call)
  local flat, got = redis.call('HGETALL', record_of(call)), {{}}
  for i = 1, #flat, 2 do
    got[flat[i]] = flat[i + 1]
  end
  return got
end
{_lua_run_fields()}
{_lua("page_fields(call)", "return fields(call", PAGE_FIELDS)}
{_lua("forget_fields(call)", "redis.call('HDEL', record_of(call)", FORGOTTEN_FIELDS)}
"""


def _lua_run_fields() -> str:
    """A record that was read whole, as a worker is told it."""
    told = ", ".join(f"got.{name} or false" for name in RUN_FIELDS)
    body = fill(f"return {{ {told} }}", 120, initial_indent="  ", subsequent_indent="    ")
    return f"local function run_fields(got)\n  got.attempt_limit = got.attempt_limit or got.max_attempts\n{body}\nend"


def _lua(head: str, command: str, names: tuple[Any, ...]) -> str:
    listed = ", ".join("..." if name is ... else f"'{name}'" for name in names)
    body = fill(f"{command}, {listed})", 120, initial_indent="  ", subsequent_indent="    ")
    return f"local function {head}\n{body}\nend"


def text(value: bytes | None) -> str | None:
    """A reply's string as text; absent stays absent."""
    return None if value is None else value.decode()


def number(value: bytes | int | None, default: int = 0) -> int:
    """A reply's number; Redis hands hash fields back as strings."""
    return default if value is None or value == b"" else int(value)
