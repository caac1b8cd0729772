"""The command line in tests: run inside this process, against the test's own server and namespace."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from toolonce.ops.cli import main


@dataclass(frozen=True)
class Said:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class CommandLine:
    """`toolonce(*words)`; the store's place is added, unless `place` says otherwise."""

    def __init__(self, capsys: pytest.CaptureFixture[str], place: Sequence[str]) -> None:
        self._capsys = capsys
        self._place = place

    def __call__(self, *words: str, place: Sequence[str] | None = None) -> Said:
        self._capsys.readouterr()
        with _logger_as_it_was():
            try:
                code = main([*words, *(self._place if place is None else place)])
            except SystemExit as end:  # argparse ends so, with --help and with errors of usage
                code = int(end.code or 0)
        out, err = self._capsys.readouterr()
        return Said(code, out, err)


@contextmanager
def _logger_as_it_was() -> Iterator[None]:
    """A command sets up logs for its process, which is the whole session's here."""
    logger = logging.getLogger("toolonce")
    before = logger.handlers, logger.propagate, logger.level
    try:
        yield
    finally:
        logger.handlers, logger.propagate = before[0], before[1]
        logger.setLevel(before[2])
