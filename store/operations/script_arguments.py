"""How the arguments of a Lua script are declared: once, by name and type, as a named tuple in the order of ARGV.

The tuple stands beside the function that sends it. A missing name or a wrong type is an error for the type checker;
what can be no argument is refused at import; a test compares each script's header. Pure: knows no server and no script.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import UnionType
from typing import Annotated, Any, Literal, NewType, TypeVar, Union, get_args, get_origin, get_type_hints

Arg = str | bytes | int | float
T = TypeVar("T")
N = TypeVar("N", bound=tuple[Any, ...])
Add = Callable[[list[Arg], Any], None]
_COUNTED, _EACH = "counted", "each"
_SCALARS = (str, bytes, int, float)

Counted = Annotated[Sequence[T], _COUNTED]
"""How many there are, and then they: ``#names, names[]`` in a header."""
Each = Annotated[Sequence[T], _EACH]
"""All that follow: ``names[]`` in a header; ``calls[key, state]`` where each is a tuple that is declared itself."""
Flag = NewType("Flag", int)
"""1 or 0. The client sends no bool, which is an int for the type checker elsewhere."""


def flag(value: bool) -> Flag:  # it converts just that
    """A truth value as the scripts read it."""
    return Flag(int(value))


@dataclass(frozen=True, slots=True)
class Declaration:
    """What is known of one declared tuple.

    Attributes:
        script: whose arguments they are; "" for what is repeated in those of a script.
        header: the names as the script's header has them.
        adders: of each field, how it is added to ARGV; None where it stands there as it is.
    """

    script: str
    header: str
    adders: tuple[Add | None, ...]
    is_flat: bool

    def flat(self, arguments: tuple[Any, ...]) -> tuple[Arg, ...]:
        """ARGV. Most tuples are that already: they cost a claim nothing more."""
        if self.is_flat:
            return arguments
        out: list[Arg] = []
        self.add(out, arguments)
        return tuple(out)

    def add(self, out: list[Arg], arguments: tuple[Any, ...]) -> None:
        """Append these arguments."""
        for value, adder in zip(arguments, self.adders, strict=True):
            if adder:
                adder(out, value)
            else:
                out.append(value)


DECLARED: dict[type[Any], Declaration] = {}
"""All declared tuples."""


def arguments_of(script: str) -> Callable[[type[N]], type[N]]:
    """Declare a named tuple to be the arguments of this script.

    Raises:
        TypeError: a field can be no argument, or the script's arguments are declared already.
    """

    def declare(fields: type[N]) -> type[N]:
        if script and any(known.script == script for known in DECLARED.values()):
            raise TypeError(f"{fields.__name__}: the arguments of {script} are declared already")
        DECLARED[fields] = _declaration(script, fields)
        return fields

    return declare


repeated = arguments_of("")
"""Declare a named tuple that stands in `Each`."""


def _declaration(script: str, fields: type[Any]) -> Declaration:
    hints = get_type_hints(fields, include_extras=True)
    described = [_field(f"{fields.__name__}.{name}", name, hint) for name, hint in hints.items()]
    if _EACH in [_mark(hint) for hint in [*hints.values()][:-1]]:
        raise TypeError(f"{fields.__name__}: what has no count stands last")
    adders = tuple(adder for _, adder in described)
    return Declaration(script, ", ".join(words for words, _ in described), adders, not any(adders))


def _field(where: str, name: str, hint: Any) -> tuple[str, Add | None]:
    """A field in the header, and how it is added."""
    mark = _mark(hint)
    item = get_args(get_args(hint)[0])[0] if mark else hint
    if mark == _EACH and item in DECLARED:
        declared = DECLARED[item]
        return f"{name}[{declared.header}]", partial(_add_each, declared)
    if not _is_scalar(item):
        raise TypeError(f"{where}: {item} is not an argument of a script; flag() makes one of a bool")
    if mark == _COUNTED:
        return f"#{name}, {name}[]", _add_counted
    return (f"{name}[]", list.extend) if mark else (name, None)


def _mark(hint: Any) -> str:
    return str(hint.__metadata__[0]) if get_origin(hint) is Annotated else ""


def _is_scalar(hint: Any) -> bool:
    if isinstance(hint, NewType):
        return _is_scalar(hint.__supertype__)
    if get_origin(hint) is Literal:
        return all(type(value) in _SCALARS for value in get_args(hint))
    if get_origin(hint) in (Union, UnionType):
        return all(map(_is_scalar, get_args(hint)))
    return isinstance(hint, type) and issubclass(hint, _SCALARS) and hint is not bool


def _add_counted(out: list[Arg], values: Sequence[Arg]) -> None:
    out.append(len(values))
    out.extend(values)


def _add_each(declared: Declaration, out: list[Arg], values: Sequence[tuple[Any, ...]]) -> None:
    if declared.is_flat:
        for value in values:
            out.extend(value)
        return
    for value in values:
        declared.add(out, value)
