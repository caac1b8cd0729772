"""Hold the direction of imports between folders: no folder imports, by whatever way, what imports it.

import-linter holds the named directions (pyproject.toml); this finds circles among folders without being told of them.
A module that stands beside its package's `__init__` counts as a place of its own.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("store", "stream", "worker", "ops")

Place = tuple[str, ...]


def circles(root: Path = ROOT) -> Iterator[str]:
    """Yield one line for each two places that reach each other, with the modules that make the first steps."""
    imports = _imports(root)
    reached = {place: _reach(place, imports) for place in imports}
    for first in sorted(imports):
        for second in sorted(imports):
            if first < second and second in reached[first] and first in reached[second]:
                steps = sorted(imports[first].get(second, set()) | imports[second].get(first, set()))
                by = ", ".join(steps) or "by way of others"
                yield f"{'/'.join(first)} and {'/'.join(second)} import each other: {by}"


def _imports(root: Path) -> dict[Place, dict[Place, set[str]]]:
    """Place -> place that it imports -> the modules that do. The packages' public faces are left out."""
    found: dict[Place, dict[Place, set[str]]] = {}
    paths = (path for package in PACKAGES for path in sorted((root / package).rglob("*.py")))
    for path in paths:
        source = _place(root, path)
        targets = () if path.name == "__init__.py" else _targets(root, path)
        for target in targets:
            if target != source:
                found.setdefault(source, {}).setdefault(target, set()).add(path.relative_to(root).as_posix())
    return found


def _targets(root: Path, path: Path) -> Iterator[Place]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        for target in _named_in(node, root, path):
            if target.with_suffix(".py").is_file():
                yield _place(root, target.with_suffix(".py"))


def _named_in(node: ast.AST, root: Path, path: Path) -> Iterator[Path]:
    """The modules that an import statement names, without their suffix."""
    match node:
        case ast.Import(names=names):
            yield from (root.joinpath(*alias.name.split(".")[1:]) for alias in names if _is_ours(alias.name))
        case ast.ImportFrom(level=0, module=str(module), names=names) if _is_ours(module):
            yield from _modules_of(root.joinpath(*module.split(".")[1:]), names)
        case ast.ImportFrom(level=level, module=module, names=names) if level:
            yield from _modules_of(path.parents[level - 1].joinpath(*(module or "").split(".")), names)


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == "toolonce"


def _modules_of(module: Path, names: list[ast.alias]) -> Iterator[Path]:
    for alias in names:
        named = module / alias.name
        yield named if named.with_suffix(".py").is_file() or named.is_dir() else module


def _place(root: Path, path: Path) -> Place:
    parts = path.relative_to(root).with_suffix("").parts
    return parts[:-1] if len(parts) > 2 else parts


def _reach(place: Place, imports: dict[Place, dict[Place, set[str]]]) -> set[Place]:
    seen: set[Place] = set()
    pending = [*imports[place]]
    while pending:
        target = pending.pop()
        if target not in seen:
            seen.add(target)
            pending += imports.get(target, {})
    return seen


def main() -> int:
    found = list(circles())
    print("\n".join(found) or "No folder imports in a circle.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
