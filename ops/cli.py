"""The command line: parsing and dispatch, and one line for each error.

Each command, or pair of commands, is a module with `add_parser` and `run`. Decides their order. Must not know what they
do.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NoReturn

from ..store import __version__
from ..store.model.plain import visible
from .exit_codes import ExitCode, code_of, explain
from .server.termination import signals_as_exceptions
from .views import render, stdio

MODULES = (
    "run.demo",
    "run.init",
    "run.up",
    "run.work",
    "run.consume",
    "run.submit",
    "run.decode",
    "run.wait",
    "calls.calls",
    "calls.call",
    "store.stats",
    "calls.aborted",
    "store.workers",
    "calls.tail",
    "run.replay",
    "operators.resolve",
    "operators.retry",
    "operators.cancel",
    "operators.approvals",
    "operators.limit",
    "operators.pauses",
    "operators.recover",
    "store.doctor",
    "store.url",
    "store.metrics",
    "tools.tools",
    "store.rq_env",
    "store.keys",
    "operators.purge",
)
"""In the order of `--help`: commands that run something, that show something, that change calls."""


class _Parser(argparse.ArgumentParser):
    """A parser that reports errors in one line, as all commands do."""

    def error(self, message: str) -> NoReturn:
        self.exit(ExitCode.USAGE, visible(f"toolonce: {message}; see `{self.prog} --help`") + "\n")


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands; the parsed arguments hold the chosen command's `run`."""
    parser = _Parser(
        prog="toolonce",
        description="Run the tool calls of LLM agents durably: one call, one effect, one stored answer.",
        epilog="In trouble: `toolonce doctor`. To start: `toolonce demo`, then `toolonce init`. Each command has "
        "--help with examples. Exit codes: 0 done, 1 a call did not succeed, 2 usage, 3 Redis unreachable, 4 refused "
        "for safety.",
    )
    parser.add_argument("--version", action="version", version=f"toolonce {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name in MODULES:
        module = import_module(f".commands.{name}", __package__)
        known = set(commands.choices)
        module.add_parser(commands)
        for added in commands.choices.keys() - known:
            commands.choices[added].set_defaults(run=module.run)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Expected errors are reported in one line, without a traceback."""
    stdio.prepare()
    try:
        args = build_parser().parse_args(arguments)
        with signals_as_exceptions():
            return _guarded(args.run, args)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:  # the reader of the output is gone (`| head`)
        stdio.give_up_output()
        return ExitCode.DONE


def _guarded(run: Callable[[argparse.Namespace], int], args: argparse.Namespace) -> int:
    try:
        code = run(args)
        sys.stdout.flush()  # so that a write error is reported now, and changes the exit code
        return code
    except BrokenPipeError:
        raise
    except Exception as error:
        code_or_none = code_of(error)
        if code_or_none is None:
            raise
        if isinstance(error, OSError):
            stdio.give_up_output()
        render.say(f"toolonce: {' '.join(explain(error).split())}")
        return code_or_none


if __name__ == "__main__":
    sys.exit(main())
