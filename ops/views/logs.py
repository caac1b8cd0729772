"""Logs of our long-running processes: one event a line, as JSON or for eyes, on stderr.

Decides the form and which fields may appear. Payloads never do: arguments and values are no fields here.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from datetime import UTC, datetime
from typing import Any

from ...store.model.plain import visible
from ...worker.execution.log_context import RUN, facts
from .render import json_text

LOG = "TOOLONCE_LOG"
LEVEL = "TOOLONCE_LOG_LEVEL"
FORMS = ("console", "json")
FIELDS = (
    "event", "call", "idempotency_key", "scope", "turn", "tool", "fence", "attempt", "state", "queue", "worker",
    "tenant", "entry", "dialect", "reason", "duration_ms", "bytes", "tokens",
)  # fmt: skip
"""Extra fields that a log record may carry; all others stay out, so that no payload slips through."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """--log and --log-level."""
    group = parser.add_argument_group("logs (stderr)")
    group.add_argument("--log", choices=FORMS, help=f"else {LOG}, else console on a terminal and json elsewhere")
    group.add_argument("--log-level", metavar="LEVEL", help=f"debug, info, warning, error; else {LEVEL}, else info")


def set_up(args: argparse.Namespace) -> None:
    """Send the logs of toolonce to stderr in the chosen form."""
    chosen = args.log or os.environ.get(LOG) or ("console" if sys.stderr.isatty() else "json")
    level = (args.log_level or os.environ.get(LEVEL) or "info").upper()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if chosen == "json" else ForEyes())
    logger = logging.getLogger("toolonce")
    logger.handlers = [handler]
    logger.propagate = False
    logger.setLevel(level if level in logging.getLevelNamesMapping() else "INFO")


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """The known extra fields of a record that hold something, and those of the run that it was written in."""
    run = RUN.get()
    known = {**(facts(run) if run else {}), **record.__dict__}
    return {name: value for name in FIELDS if (value := known.get(name)) not in (None, "")}


class JsonLines(logging.Formatter):
    """One JSON object a line: at, level, logger, message, then the known fields."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": _moment(record).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **fields_of(record),
        }
        if told := _traceback(self, record):
            line["exception"] = told
        return json_text(line)


class ForEyes(logging.Formatter):
    """Time, level, message, then the fields that are not in the message already; a traceback follows, indented.

    What others wrote cannot end the line, nor act on the terminal: such marks are shown as escapes.
    """

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        more = " ".join(f"{name}={value}" for name, value in fields_of(record).items() if str(value) not in message)
        line = f"{_moment(record):%H:%M:%S} {record.levelname.lower():7} {message}{'  ' + more if more else ''}"
        return "\n    ".join(map(visible, [line, *_traceback(self, record).split("\n")])).rstrip()


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    """The traceback that a line comes with, "" for none; as a text already where it comes from another process."""
    if record.exc_info and not record.exc_text:
        return formatter.formatException(record.exc_info)
    return record.exc_text or ""


def _moment(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)
