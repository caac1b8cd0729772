"""Hold the size of modules and functions, so that nothing grows into one object that does everything.

Decides what counts as a line, a level of nesting and a parameter. There are no exceptions and no baselines:
a module that is too long is two modules.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODULE_LINES = {"worker": 300, "store": 300, "stream": 300, "ops": 300, "tests": 400, "scripts": 300, "benchmarks": 300}
FUNCTION_LINES = 50
NESTING = 3
PARAMETERS = 5

Function = ast.FunctionDef | ast.AsyncFunctionDef
_BRANCHES = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.TryStar, ast.Match)


def complaints(root: Path = ROOT) -> Iterator[str]:
    """Yield one line per module or function over its limit."""
    for folder in MODULE_LINES:
        for path in sorted((root / folder).rglob("*.py")):
            yield from complaints_of_module(path.read_text(encoding="utf-8"), path.relative_to(root).as_posix())


def complaints_of_module(text: str, name: str) -> Iterator[str]:
    """Yield the same for one module's text; its name is the path from the root, which tells the limit."""
    folder = name.partition("/")[0]
    if (lines := len(text.splitlines())) > MODULE_LINES[folder]:
        yield f"{name}: {lines} lines, at most {MODULE_LINES[folder]}"
    for function in ast.walk(ast.parse(text)):
        if isinstance(function, Function):
            yield from _complaints_of(function, f"{name}:{function.lineno} {function.name}", folder)


def _complaints_of(function: Function, where: str, folder: str) -> Iterator[str]:
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    if lines > FUNCTION_LINES:
        yield f"{where}: {lines} lines, at most {FUNCTION_LINES}"
    if (depth := _nesting(function.body)) > NESTING:
        yield f"{where}: nested {depth} deep, at most {NESTING}"
    # Tests take fixtures as parameters; those are no burden on a caller.
    if folder != "tests" and (count := _parameters(function)) > PARAMETERS:
        yield f"{where}: {count} parameters, at most {PARAMETERS}"


def _parameters(function: Function) -> int:
    named = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return len([one for one in named if one.arg not in {"self", "cls"}])


def _nesting(body: list[ast.stmt]) -> int:
    return max((_depth(statement) for statement in body), default=0)


def _depth(statement: ast.stmt) -> int:
    if isinstance(statement, Function | ast.ClassDef):
        return 0  # judged on its own
    own = int(isinstance(statement, _BRANCHES))
    deepest = own + max((_nesting(block) for block in _blocks(statement)), default=0)
    if isinstance(statement, ast.If) and _is_elif(statement.orelse):
        return max(own + _nesting(statement.body), _depth(statement.orelse[0]))
    return deepest


def _is_elif(orelse: list[ast.stmt]) -> bool:
    return len(orelse) == 1 and isinstance(orelse[0], ast.If)


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for field in ("body", "orelse", "finalbody"):
        yield getattr(statement, field, [])
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body


def main() -> int:
    found = list(complaints())
    print("\n".join(found) or "Sizes kept.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
