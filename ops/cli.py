"""The command line: parsing and dispatch, and one line for each error.

Each command, or pair of commands, is a module with `add_parser` and `run`; this one knows their order and nothing
of what they do.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import version
from typing import NoReturn

from .exit_codes import ExitCode, code_of

MODULES = (
    "demo",
    "up",
    "work",
    "consume",
    "submit",
    "decode",
    "wait",
    "calls",
    "call",
    "stats",
    "workers",
    "tail",
    "replay",
    "resolve",
    "retry",
    "cancel",
    "approvals",
    "recover",
    "doctor",
    "purge",
)
"""In the order of `--help`: first what runs things, then what looks, then what acts."""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, like all others."""

    def error(self, message: str) -> NoReturn:
        self.exit(ExitCode.USAGE, f"toolonce: {message}; see `{self.prog} --help`\n")


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands; the parsed arguments hold the chosen command's `run`."""
    parser = _Parser(
        prog="toolonce",
        description="Run the tool calls of LLM agents durably: one call, one effect, one stored answer.",
        epilog="Start with `toolonce demo`. Each command has --help with examples. "
        "Exit codes: 0 done, 1 a call ended badly, 2 usage, 3 Redis unreachable, 4 refused for safety.",
    )
    parser.add_argument("--version", action="version", version=f"toolonce {version('toolonce')}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name in MODULES:
        module = import_module(f".{name}", __package__)
        known = set(commands.choices)
        module.add_parser(commands)
        for added in commands.choices.keys() - known:
            commands.choices[added].set_defaults(run=module.run)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; nothing that can be explained in a line leaves a traceback."""
    args = build_parser().parse_args(arguments)
    try:
        return _guarded(args.run, args)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone (`| head`). Python would complain again while it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.DONE


def _guarded(run: Callable[[argparse.Namespace], int], args: argparse.Namespace) -> int:
    try:
        return run(args)
    except BrokenPipeError:
        raise
    except Exception as error:
        code = code_of(error)
        if code is None:
            raise
        print(f"toolonce: {' '.join(str(error).split())}", file=sys.stderr)
        return code


if __name__ == "__main__":
    sys.exit(main())
