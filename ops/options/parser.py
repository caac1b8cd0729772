"""Builds a command's parser: description, examples, and the options that many commands share."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from . import settings

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


def command(
    subparsers: Subparsers, name: str, summary: str, *, examples: str, store: bool = True
) -> argparse.ArgumentParser:
    """A parser with a one-line summary and examples; `store` adds the options that locate the store."""
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
    """Add --json: the data for programs. `shape` names the members that are always present; others may be added."""
    parser.add_argument("--json", action="store_true", help=f"print JSON instead of a table: {shape}")


def filled(text: str) -> str:
    """A non-empty text, since an unset variable in a script must not select everything. An argparse type."""
    if not text.strip():
        raise argparse.ArgumentTypeError("the value is empty; is a variable not set?")
    return text
