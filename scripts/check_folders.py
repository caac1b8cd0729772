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
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        base = path.parent
        for _ in range(node.level - 1):
            base = base.parent
        module = base.joinpath(*(node.module or "").split("."))
        for alias in node.names:
            named = module / alias.name
            is_module = named.with_suffix(".py").is_file() or named.is_dir()
            target = named if is_module else module
            if target.with_suffix(".py").is_file():
                yield _place(root, target.with_suffix(".py"))


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
