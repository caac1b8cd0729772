"""`toolonce demo`: shows the whole path on its own server and worker, and checks it with a ledger outside Redis."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Iterable
from importlib.resources import files
from types import FrameType
from typing import TYPE_CHECKING

from ....stream.decoding.detect import detect_dialect
from ....stream.dialects.table import spec_of
from ....stream.turns.turn import DIALECTS
from ...demo.environment import set_up
from ...demo.scenario import Steps, Transcript
from ...exit_codes import ExitCode
from ...options.inputs import read_bytes
from ...options.parser import command

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from ...options.parser import Subparsers

EXAMPLES = """
toolonce demo                    streams of all dialects, a cut one, a killed worker; under a minute
toolonce demo turn.sse           any recorded stream; its tools are simulated and return their arguments
"""
PAYMENT = "payment.openai-responses.sse"
"""The stream whose worker is killed, in a step of its own."""


def add_parser(subparsers: Subparsers) -> None:
    parser = command(
        subparsers, "demo", "Show everything on a temporary server, then clean up", examples=EXAMPLES, store=False
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="recorded streams (default: those of the demo)")
    parser.add_argument("--dialect", choices=DIALECTS, help="dialect of the files (default: detected for each file)")


def run(args: argparse.Namespace) -> int:
    signal.signal(signal.SIGTERM, _end)
    transcripts = [_recorded(path, args.dialect) for path in args.files] or _shipped()
    payment = next((one for one in transcripts if one.name == PAYMENT and not one.recorded), None)
    streams = [one for one in transcripts if one is not payment]
    with set_up(_tools_of(one for one in streams if one.recorded)) as environment:
        steps = Steps(environment)
        steps.first_time(streams)
        steps.again(streams)
        if payment:
            steps.killed_worker(payment)
        return ExitCode.DONE if steps.verdict() else ExitCode.ENDED_BADLY


def _tools_of(streams: Iterable[Transcript]) -> list[str]:
    """The names of the tools that recorded streams call; these tools are simulated."""
    names: set[str] = set()
    for turn in (one.turn() for one in streams):
        names |= {call.name for call in turn.calls} | {call.name for call in turn.rejected}
    return sorted(names)


def _shipped() -> list[Transcript]:
    folder = files("toolonce.ops.demo").joinpath("transcripts")
    return [_transcript(path) for path in sorted(folder.iterdir(), key=lambda path: path.name)]


def _transcript(path: Traversable) -> Transcript:
    return Transcript(path.name, spec_of(path.name.split(".")[1]).name, path.read_bytes())


def _recorded(path: str, dialect: str | None) -> Transcript:
    body = read_bytes(path)
    return Transcript(path, spec_of(dialect).name if dialect else detect_dialect(body), body, recorded=True)


def _end(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
