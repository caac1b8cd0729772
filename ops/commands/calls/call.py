"""`toolonce call KEY`: shows everything about one call, and the commands that fit its state."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ....store.model.controls import ControlKind
from ....store.model.states import State
from ....store.operations.controls import controls as settings
from ...health import controls, pauses
from ...health.controls import ControlRow, read_controls
from ...options.lookup import get_record
from ...options.parser import add_json, command
from ...options.settings import open_store
from ...views import render
from ...views.call_view import as_json, masked, progress_of, standing, time_line

if TYPE_CHECKING:
    from ....store.model.controls import Setting
    from ....store.operations.queries import Record
    from ...options.parser import Subparsers

EXAMPLES = """
toolonce call 3f9a2c41d07b          the first digits of the key; `toolonce calls` shows them
toolonce call 3f9a2c41d07b --json
"""

NOT_PAUSED: Mapping[str, Setting] = {}
SHAPE = (
    "{call, idempotency_key, state, name, scope, turn, position, attempt, fence, arguments, error, marks, begun, "
    "may_have_run, progress, forgotten, lease_left_ms, history, evidence, next, ...}"
)


def add_parser(subparsers: Subparsers) -> None:
    parser = command(subparsers, "call", "Show one call: identity, arguments, state, history", examples=EXAMPLES)
    parser.add_argument("key", metavar="KEY", help="a call key, an idempotency key, or the first digits of either")
    add_json(parser, SHAPE.replace("next, ", "next, controls, paused_by, "))


def run(args: argparse.Namespace) -> int:
    with open_store(args) as connection:
        found = get_record(connection, args.key)
        fields = found.fields
        limits = [row for row in read_controls(connection) if row.waited_for_as == fields.waits]
        paused = connection.run(settings(connection.space)).pauses_of(fields.tool, fields.tenant, fields.queue)
    if found.state is not State.QUEUED:
        paused = {}
    if args.json:
        told = [pauses.setting_json(target, setting) for target, setting in paused.items()]
        render.show_json({**as_json(found), "controls": [controls.as_json(row) for row in limits], "paused_by": told})
    else:
        show(found, limits, paused)
    return 0


def _ids(view: dict[str, Any]) -> str:
    reply_id = view.get("reply_id")
    return f"{view.get('id', 'none')}" + (f" (used before: replies use {reply_id})" if reply_id else "")


def show(found: Record, limits: Sequence[ControlRow] = (), paused: Mapping[str, Setting] = NOT_PAUSED) -> None:
    """Print the call for people. `limits`: what it waits for now; `paused`: the pauses that keep it from running."""
    view = as_json(found)
    render.show_pairs(
        {
            "call": found.key,
            "idempotency key": view["idempotency_key"],
            "tool": f"{view.get('name')} (version {view.get('version')}, {view.get('effect')})",
            "requested by": f"scope {view.get('scope')}, turn {view.get('turn')}, id {_ids(view)}",
            "arguments": "forgotten" if view["forgotten"] else render.json_line(view["arguments"]),
            "state": render.state(found.state).append(standing(found).removeprefix(found.state)),
            "attempt": f"{view.get('attempt', 0)} of {view.get('attempt_limit', '?')}, fence {found.fence}",
            **({"waits for": "; ".join(_told(row, found.read_at) for row in limits)} if limits else {}),
            **({"paused": pauses.words(paused, found.read_at)} if paused else {}),
            **_answer(found),
        }
    )
    _section("history", ("when", "what", "states", "by, why"), time_line(found))
    evidence = [(render.json_line(item),) for item in view["evidence"]]
    _section("evidence (came too late to count)", ("evidence",), evidence)
    _section("next", ("possible commands",), [(step,) for step in view["next"]])


def _told(row: ControlRow, now: int) -> str:
    running = f"{row.use.running} run, " if row.use and row.kind is ControlKind.LIMIT else ""
    use = f" ({running}{row.use.waiting} wait)" if row.use else ""
    return f"{row.target}{use}: {row.told(now)}"


def _answer(found: Record) -> dict[str, object]:
    lines: dict[str, object] = {}
    if found.fields.result and found.state == "succeeded":
        lines["result"] = render.json_line(masked(found.fields.result))
    if found.state == "unknown" and (heard := found.fields.heard):
        lines["reconcile"] = f"asked {found.fields.asked} times; last answer: {heard}"
    if failure := found.failure:
        lines["error"] = f"{failure.code}: {failure.message}"
    if said := progress_of(found.fields):
        share = "" if said["fraction"] is None else f"{said['fraction']:.0%} "
        lines["last progress"] = f"{share}{said['message']}".rstrip()
    fields = found.fields
    shown = {"marks": fields.marks, "worker": fields.worker, "settled by": fields.settled_by}
    return lines | {title: text for title, text in shown.items() if text}


def _section(title: str, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    if rows:
        print()
        render.show_table(columns, rows, title=title)
