"""How a command's parser is made: description, examples as typed, and the options that many share."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from . import settings

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


def command(
    subparsers: Subparsers, name: str, summary: str, *, examples: str, store: bool = True
) -> argparse.ArgumentParser:
    """A parser with a one-line summary and examples; `store` adds the options that say where the store is."""
    parser = subparsers.add_parser(
        name,
        help=summary[0].lower() + summary[1:],
        description=summary,
        epilog="examples:\n" + "\n".join(f"  {line}" for line in examples.strip().splitlines()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    if store:
        settings.add_options(parser)
    return parser


def add_json(parser: argparse.ArgumentParser, shape: str) -> None:
    """--json: the same data for programs. `shape` tells the members that are always there; more may come, none go."""
    parser.add_argument("--json", action="store_true", help=f"print JSON instead of a table: {shape}")


def filled(text: str) -> str:
    """A word that says something: an unset variable of a script must not choose everything. An argparse type."""
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty; was a variable not set?")
    return text
