"""`toolonce init`: writes a first project: tools, a harness, a recorded response for it, and a test."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from shlex import join, quote
from typing import TYPE_CHECKING

from ....store.connections.project import own_project
from ...errors import Usage
from ...options.parser import command, filled
from ...options.settings import REDIS
from ...server.embedded import make_folder
from ...views import render

if TYPE_CHECKING:
    from ...options.parser import Subparsers

EXAMPLES = """
toolonce init && toolonce up --tools tools:tools      then, in a second terminal: python harness.py
toolonce init first-project
"""
SOURCES = {
    "tools.py": "templates/tools.py.txt",
    "harness.py": "templates/harness.py.txt",
    "turn.sse": "demo/transcripts/invoice.openai-responses.sse",
    "test_tools.py": "templates/test_tools.py.txt",
}
"""What is written, and from where in this package. The response is one of the dialect that the harness reads."""


def add_parser(subparsers: Subparsers) -> None:
    summary = "Write a first project: tools.py, harness.py, a recorded response and a test; overwrites nothing"
    parser = command(subparsers, "init", summary, examples=EXAMPLES, store=False)
    parser.add_argument(
        "folder", nargs="?", type=filled, default=".", metavar="DIR", help="where to write (default: this folder)"
    )


def run(args: argparse.Namespace) -> int:
    folder = Path(args.folder)
    if folder.exists() and not folder.is_dir():
        raise Usage(f"{folder} is a file; name a folder")
    folder.mkdir(parents=True, exist_ok=True)
    written = [name for name in SOURCES if _write(folder / name, _text(name))]
    project = own_project(folder)
    for warning in project.warnings:
        render.say(f"toolonce: warning: {warning}")
    make_folder(project)
    if written:
        render.say(f"wrote {', '.join(written)} in {folder.resolve()}; its store: {project.folder}")
    else:
        render.say(f"nothing to write: all of it is in {folder.resolve()}; its store: {project.folder}")
    for name in SOURCES.keys() - set(written) if written else ():
        render.say(f"kept {name} as it was: it is there already, and the others may not fit it")
    if os.environ.get(REDIS):
        render.say(f"note: {REDIS} is set, so commands and programs in this terminal use that server")
    render.say("next, in this terminal and in a second one:")
    for line in _next(folder):
        render.show(line)
    return 0


def _text(name: str) -> bytes:
    return files("toolonce.ops").joinpath(SOURCES[name]).read_bytes()


def _write(path: Path, text: bytes) -> bool:
    """Write a new file. False, and nothing is changed, where there is one."""
    try:
        with path.open("xb") as file:
            file.write(text)
    except FileExistsError:
        return False
    return True


def _next(folder: Path) -> Iterator[str]:
    """The two commands to run next, as they work in this shell."""
    enter = "" if _is_here(folder) else f"cd {quote(str(folder))} && "
    yield f"{enter}{join([_program('toolonce'), 'up', '--tools', 'tools:tools'])}"
    yield f"{enter}{join([_program('python'), 'harness.py'])}"


def _is_here(folder: Path) -> bool:
    try:
        return folder.resolve() == Path.cwd()
    except FileNotFoundError:  # the current folder was removed
        return False


def _program(name: str) -> str:
    """The name, if the shell finds with it the program of this installation, else its path."""
    own = Path(sys.executable).with_name(name)
    found = shutil.which(name)
    is_found = found is not None and Path(found).absolute() == own.absolute()
    return name if is_found or not own.exists() else str(own)
