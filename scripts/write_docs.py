"""Writes the parts of ARCHITECTURE.md that the code decides (file map, state diagram, record table, turn ids), and
the list of public names in `docs/api.md`.

`python scripts/write_docs.py` rewrites them in place; `--check` only says which are stale (exit 1). Each part stands
between two comment lines, `<!-- NAME: begin -->` and `<!-- NAME: end -->`.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # run as a script, it finds its neighbours by their package

from scripts import public_api  # noqa: E402  they need the path above
from toolonce.store.model.record import FIELDS  # noqa: E402  they need the path above
from toolonce.store.model.states import SETTLED, TABLE, State  # noqa: E402  they need the path above
from toolonce.stream.dialects import table as dialects  # noqa: E402  they need the path above
from toolonce.stream.turns.turn import DIALECTS  # noqa: E402  they need the path above

PACKAGES = ("store", "stream", "worker", "ops")
DOCUMENT = ROOT / "ARCHITECTURE.md"
API = ROOT / "docs" / "api.md"


def file_map() -> str:
    """Each folder with its modules and the first sentence of their docstrings; each Lua script with its purpose."""
    lines: list[str] = []
    for package in PACKAGES:
        for folder, paths in groupby(sorted(_tracked(package, ".py"), key=_shelf), key=lambda path: path.parent):
            name = folder.relative_to(ROOT).as_posix()
            lines += [f"**{name}/**: {_sentence(folder / '__init__.py')}\n"]
            lines += [f"- `{name}/{path.name}`: {_sentence(path)}" for path in paths if path.name != "__init__.py"]
            lines.append("")
        scripts = _tracked(package, ".lua")
        if scripts:
            lines.append(f"**{package}/lua/**: one operation a file; a leading underscore marks a prelude.\n")
            lines += [f"- `{package}/lua/{path.name}`: {_purpose(path)}" for path in scripts]
            lines.append("")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip()


def _shelf(path: Path) -> tuple[str, str]:
    """The package's own modules first, then its folders by name."""
    return path.parent.as_posix(), path.name


def state_diagram() -> str:
    """The table as a Mermaid diagram; one arrow for all operations between two states."""
    arrows: dict[tuple[str, str], set[str]] = {}
    for row in TABLE:
        arrows.setdefault((row.source or "[*]", row.target), set()).add(row.operation)
    lines = ["```mermaid", "stateDiagram-v2"]
    lines += [f"  {source} --> {target}: {', '.join(sorted(ops))}" for (source, target), ops in sorted(arrows.items())]
    lines += [f"  {state} --> [*]" for state in State if state in SETTLED and state is not State.FAILED]
    return "\n".join([*lines, "```"])


def record_table() -> str:
    """The fields of the record, in the order of their declaration."""
    lines = ["| field | type | written by | absent means | secret | kept by forget |", "|---|---|---|---|---|---|"]
    for name, field in FIELDS.items():
        writers = ", ".join(f"`{writer}`" for writer in field.writers)
        secret, kept = "yes" if field.is_secret else "", "yes" if field.is_kept else "no"
        lines.append(f"| `{name}` | {field.kind} | {writers} | {field.absent} | {secret} | {kept} |")
    return "\n".join(lines)


def turn_ids() -> str:
    """Where each dialect carries the turn's id."""
    lines = ["| dialect | member | first seen in | who sends none, or one that comes again |", "|---|---|---|---|"]
    for name in DIALECTS:
        row = dialects.TABLE[name].turn_id
        lines.append(f"| `{name}` | {row.member} | {row.first} | {row.missing} |")
    return "\n".join(lines)


PARTS: dict[str, Callable[[], str]] = {
    "files": file_map,
    "states": state_diagram,
    "record": record_table,
    "turn ids": turn_ids,
}


def written(text: str) -> str:
    """The document with every part as the code has it today."""
    for name, make in PARTS.items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        before, rest = text.split(begin)
        text = f"{before}{begin}\n{make()}\n{end}{rest.split(end)[1]}"
    return text


def _tracked(package: str, suffix: str) -> list[Path]:
    listed = subprocess.run(["git", "ls-files", package], cwd=ROOT, capture_output=True, text=True, check=True)
    paths = (ROOT / line for line in listed.stdout.splitlines())
    return sorted(path for path in paths if path.suffix == suffix and "node" not in path.parts and path.exists())


def _sentence(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    first = re.split(r"(?<=[.!?])\s|\n\n", docstring, maxsplit=1)[0]
    return " ".join(first.split())


def _purpose(path: Path) -> str:
    comment = next(line for line in path.read_text("utf-8").splitlines() if line.startswith("-- "))
    return comment.removeprefix("-- ").removeprefix(f"{path.stem}: ")


def main() -> int:
    fresh = {DOCUMENT: written(DOCUMENT.read_text("utf-8")), API: public_api.page()}
    if "--check" not in sys.argv:
        for path, text in fresh.items():
            path.write_text(text, "utf-8")
        return 0
    stale = [path for path, text in fresh.items() if not path.exists() or path.read_text("utf-8") != text]
    for path in stale:
        sys.stderr.write(f"{path.relative_to(ROOT)} is stale: run .venv/bin/python scripts/write_docs.py\n")
    return int(bool(stale))


if __name__ == "__main__":
    sys.exit(main())
