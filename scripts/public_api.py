"""The public face as the code has it: what `toolonce.store`, `.stream`, `.worker` export.

Decides what counts as public: each exported name, and of a class its methods and properties without an underscore.
`docs/api.md` is written from here (see `write_docs.py`), and tests ask here what lacks a docstring or an export.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from enum import Enum
from functools import cache
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any, is_typeddict

PACKAGES = ("toolonce.store", "toolonce.stream", "toolonce.worker")  # the test kit is exported by the last
_ADDRESS = re.compile(r"<[^<>]* at 0x[0-9a-f]+>")
_TYPE_VARIABLES = {"F", "H", "P", "R", "T"}


def exports(package: str) -> dict[str, Any]:
    """Name -> what a program gets under it, in the order of the alphabet."""
    module = import_module(package)
    return {name: getattr(module, name) for name in sorted(module.__all__)}


def page() -> str:
    """`docs/api.md`, whole."""
    lines = [
        "# The public names",
        "",
        "Written by `scripts/write_docs.py` from the code; a test compares. Names that are not listed here may change"
        " without notice.",
    ]
    for package in PACKAGES:
        lines += ["", f"## {package}", "", first_sentence(import_module(package))]
        for name, thing in exports(package).items():
            lines += ["", *_entry(name, thing)]
    return "\n".join(lines) + "\n"


def _entry(name: str, thing: Any) -> Iterator[str]:
    if inspect.isclass(thing):
        yield f"### class `{name}`"
        yield ""
        yield first_sentence(thing)
        members = list(_members(thing))
        if members or is_typeddict(thing):
            yield ""
        if is_typeddict(thing):
            yield from (f"- `{key}: {_forward(value)}`" for key, value in thing.__annotations__.items())
        for member, what in members:
            told = "" if isinstance(what, Enum) or not first_sentence(what) else f": {first_sentence(what)}"
            yield f"- `{_shown(member, what)}`{told}"
    elif isinstance(thing, FunctionType):
        yield f"### `{_shown(name, thing)}`"
        yield ""
        yield first_sentence(thing)
    else:
        yield f"### `{name}`"
        yield ""
        yield f"A value of type `{type(thing).__name__}`." if not _is_alias(thing) else f"`{_alias(thing)}`"


def _forward(annotation: Any) -> str:
    return str(getattr(annotation, "__forward_arg__", annotation))


def is_protocol(kind: type) -> bool:
    return bool(getattr(kind, "_is_protocol", False))


def _is_alias(thing: Any) -> bool:
    return getattr(thing, "__module__", "") == "typing" or type(thing).__module__ in (
        "typing",
        "types",
        "collections.abc",
    )


def _alias(thing: Any) -> str:
    return re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Z])", "", str(thing))


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    """The constructor, where it is more than an exception's, then what the class and its own bases declare."""
    if issubclass(kind, Enum):
        yield from ((member.name, member) for member in kind)
        return
    if is_typeddict(kind) or is_protocol(kind):
        pass
    elif is_dataclass(kind) or ("__init__" in vars(kind) and not issubclass(kind, BaseException)):
        yield "__init__", kind.__init__
    seen: set[str] = set()
    for base in (each for each in kind.__mro__ if each.__module__.startswith("toolonce.")):
        for name, what in vars(base).items():
            if not name.startswith("_") and name not in seen and _is_member(what):
                seen.add(name)
                yield name, what


def _is_member(what: Any) -> bool:
    return isinstance(what, FunctionType | property | classmethod | staticmethod)


def _function(what: Any) -> Any:
    if isinstance(what, property):
        return what.fget
    return what.__func__ if isinstance(what, classmethod | staticmethod) else what


class _AsIs(str):
    """An annotation as it stands in the source, without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _shown(name: str, what: Any) -> str:
    if isinstance(what, Enum):
        return f"{name} = {what.value!r}" if isinstance(what.value, str | int) else name
    signature = inspect.signature(_function(what))
    result = signature.return_annotation
    if isinstance(what, property):
        return f"{name}: {result}"
    parameters = [
        parameter.replace(
            annotation=_AsIs(parameter.annotation) if isinstance(parameter.annotation, str) else parameter.annotation,
            default=parameter.default if _is_plain(parameter.default) else _AsIs("..."),
        )
        for parameter in signature.parameters.values()
        if parameter.name not in ("self", "cls") and not parameter.name.startswith("_")
    ]
    shown = signature.replace(
        parameters=parameters, return_annotation=_AsIs(result) if isinstance(result, str) else result
    )
    text = _ADDRESS.sub("...", str(shown))
    if name == "__init__":
        return f"(constructor){text.removesuffix(' -> None')}"
    return f"{'async ' if inspect.iscoroutinefunction(_function(what)) else ''}{name}{text}"


def _is_plain(default: Any) -> bool:
    return default is inspect.Parameter.empty or isinstance(default, str | int | float | bool | tuple | None)


def first_sentence(thing: Any) -> str:
    """Of its own docstring; "" where it has none."""
    own = _function(thing) if _is_member(thing) else thing
    text = getattr(own, "__doc__", None) or ""
    first = re.split(r"(?<=[.!?])\s|\n\n", inspect.cleandoc(text), maxsplit=1)[0]
    return " ".join(first.split())


def undocumented() -> list[str]:
    """Public classes, functions and methods that say nothing of themselves."""
    found = []
    for package in PACKAGES:
        for name, thing in exports(package).items():
            if not (inspect.isclass(thing) or isinstance(thing, FunctionType)):
                continue
            if not first_sentence(thing):
                found.append(f"{package}.{name}")
            if inspect.isclass(thing) and not issubclass(thing, Enum):
                found += [
                    f"{package}.{name}.{member}"
                    for member, what in _members(thing)
                    if member != "__init__" and not first_sentence(what)
                ]
    return found


def unexported() -> list[str]:
    """Types of ours that a public signature or attribute names and no public package exports."""
    known = {name for package in PACKAGES for name in exports(package)} | _TYPE_VARIABLES
    named = (
        each for package in PACKAGES for name, thing in exports(package).items() for each in _annotations(name, thing)
    )
    return sorted(
        {
            f"{place}: {used} of {module}"
            for place, text, module in named
            for used in (_names(text) - known) & _ours(module)
        }
    )


def _annotations(name: str, thing: Any) -> Iterator[tuple[str, str, str]]:
    """Where an annotation stands, its text, and the module that gives its names a meaning."""
    if isinstance(thing, FunctionType):
        yield from ((name, str(text), thing.__module__) for text in thing.__annotations__.values())
    if not inspect.isclass(thing):
        return
    for base in (each for each in thing.__mro__ if each.__module__.startswith("toolonce.")):
        fields = vars(base).get("__annotations__", {})
        yield from ((f"{name}.{at}", str(text), base.__module__) for at, text in fields.items() if at[0] != "_")
    for member, what in _members(thing):
        function = _function(what)
        texts = getattr(function, "__annotations__", {}).values()
        yield from ((f"{name}.{member}", str(text), function.__module__) for text in texts)


def _names(annotation: str) -> set[str]:
    try:
        tree = ast.parse(annotation, mode="eval")
    except SyntaxError:
        return set()
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} | {
        node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)
    }


@cache
def _ours(module: str) -> frozenset[str]:
    """What a module defines at its top, or takes from another one of ours."""
    path = inspect.getsourcefile(import_module(module))
    assert path
    names: set[str] = set()
    for node in ast.walk(ast.parse(Path(path).read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").startswith("toolonce")):
            names |= {alias.asname or alias.name for alias in node.names}
            names |= {name for alias in node.names for name in _through(node, alias.name, module)}
    for node in ast.parse(Path(path).read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return frozenset(names)


def _through(node: ast.ImportFrom, name: str, module: str) -> Iterator[str]:
    """Where a whole module was imported: what it defines, since an annotation names it behind a dot."""
    base = module.rsplit(".", node.level)[0] if node.level else ""
    full = ".".join(part for part in (base, node.module or "", name) if part)
    try:
        inner = import_module(full)
    except ImportError:
        return
    yield from (each for each, what in vars(inner).items() if inspect.isclass(what) and what.__module__ == full)
