"""`toolonce workers`: lists workers, their last heartbeat and what they are doing."""

from __future__ import annotations

import argparse
import socket
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.text import Text

from ....worker.runtime.worker_status import Report, WorkerRow, read_workers
from ...exit_codes import ExitCode
from ...health import controls, pauses
from ...health.controls import read_controls
from ...health.pauses import read_pauses
from ...options.listing import server_now
from ...options.parser import add_json, command
from ...options.settings import open_store
from ...views import render
from ...views.render import SHOWN_DIGITS

if TYPE_CHECKING:
    from ...options.parser import Subparsers

EXAMPLES = """
toolonce workers
toolonce workers --here              for a container's health check: exits 1 if no worker runs on this machine
toolonce workers --json | jq '.workers[] | {name, busy}'
"""


def add_parser(subparsers: Subparsers) -> None:
    parser = command(
        subparsers, "workers", "Show workers, their last heartbeat and what they are doing", examples=EXAMPLES
    )
    parser.add_argument("--here", action="store_true", help="only of this machine or container; exit 1 if none runs")
    add_json(parser, "{workers: [{name, hostname, pid, queues, started_at, heard_s, silent, ...}], controls, pauses}")


def run(args: argparse.Namespace) -> int:
    with open_store(args) as connection:
        rows = read_workers(connection)
        limits, paused, now = read_controls(connection), read_pauses(connection), server_now(connection)
    if args.here:
        rows = tuple(row for row in rows if row.hostname == socket.gethostname())
    if args.json:
        shown = [as_json(row) for row in rows]
        settings = {
            "controls": [controls.as_json(row) for row in limits], "pauses": [pauses.as_json(row) for row in paused],
        }  # fmt: skip
        render.show_json({"workers": shown, **settings})
    elif not rows:
        render.say(f"no worker runs in {connection.place}; start one: toolonce work --tools MODULE:REGISTRY")
    else:
        _show(rows)
        controls.show(limits, now)
        pauses.show(paused, now)
    lives = any(not row.is_silent for row in rows)
    return ExitCode.ENDED_BADLY if args.here and not lives else ExitCode.DONE


def as_json(row: WorkerRow) -> dict[str, Any]:
    """A worker as JSON. `heard_s`: seconds since its last heartbeat; `silent`: several heartbeats are missing."""
    report = asdict(row.report) if row.report else {}
    place = {"name": row.name, "hostname": row.hostname, "pid": row.pid, "queues": row.queues}
    return {**place, "started_at": row.started_at, "heard_s": round(row.heard_s, 3), "silent": row.is_silent, **report}


def _show(rows: tuple[WorkerRow, ...]) -> None:
    columns = ("worker", "state", "busy", "done", "failed", "given up", "heard", "runs")
    render.show_table(columns, (_cells(row, row.report) for row in rows if row.report))


def _cells(row: WorkerRow, report: Report) -> tuple[object, ...]:
    now = time.time()
    doing = Text("\n").join(
        render.plain(f"{one.tool} {one.call[:SHOWN_DIGITS]} for {render.age(round((now - one.since) * 1000))}")
        for one in report.doing
    )
    heard = f"{render.age(round(row.heard_s * 1000))} ago"
    busy = f"{report.busy}/{report.slots}"
    state = "silent" if row.is_silent else report.state
    return row.name, state, busy, report.succeeded, report.failed, report.abandoned, heard, doing
