"""Logs of long-running commands: one event per line on stderr, as JSON or as text.

Decides the form and which fields may appear. Arguments and results never do.
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
"""Extra fields that are logged; others are left out, so that no arguments or results are logged by mistake."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add --log and --log-level."""
    group = parser.add_argument_group("logs (stderr)")
    group.add_argument(
        "--log", choices=FORMS, help=f"form of logs; default: {LOG}, else console on a terminal and json elsewhere"
    )
    group.add_argument(
        "--log-level", metavar="LEVEL", help=f"debug, info, warning or error; default: {LEVEL}, else info"
    )


def set_up(args: argparse.Namespace) -> None:
    """Send the logs of toolonce to stderr in the chosen form."""
    chosen = args.log or os.environ.get(LOG) or ("console" if sys.stderr.isatty() else "json")
    level = (args.log_level or os.environ.get(LEVEL) or "info").upper()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if chosen == "json" else ConsoleLines())
    logger = logging.getLogger("toolonce")
    logger.handlers = [handler]
    logger.propagate = False
    logger.setLevel(level if level in logging.getLevelNamesMapping() else "INFO")


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """The known extra fields of a record that are set, and those of the run that wrote it."""
    run = RUN.get()
    known = {**(facts(run) if run else {}), **record.__dict__}
    return {name: value for name in FIELDS if (value := known.get(name)) not in (None, "")}


class JsonLines(logging.Formatter):
    """Formats records as JSON, one object per line: at, level, logger, message, then the known fields."""

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


class ConsoleLines(logging.Formatter):
    """Formats records as text: time, level, message, then fields that the message does not contain, then a traceback.

    Control characters are escaped, so that a value can neither end the line nor control the terminal.
    """

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        more = " ".join(f"{name}={value}" for name, value in fields_of(record).items() if str(value) not in message)
        line = f"{_moment(record):%H:%M:%S} {record.levelname.lower():7} {message}{'  ' + more if more else ''}"
        return "\n    ".join(map(visible, [line, *_traceback(self, record).split("\n")])).rstrip()


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    """The traceback of a record, "" for none. A record from another process holds it as text."""
    if record.exc_info and not record.exc_text:
        return formatter.formatException(record.exc_info)
    return record.exc_text or ""


def _moment(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)
