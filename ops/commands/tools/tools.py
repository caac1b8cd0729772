"""`toolonce tools`: checks a registry before it is used, or lists the tools that workers have published."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....store.model.specs import ToolSpec
from ....store.operations.tools import published
from ....stream.dialects.tools import ToolDefinitions, described
from ....stream.turns.turn import DIALECTS
from ....worker.tools.audit import DEFAULT_FANOUT, Verdict, audit, forbids_parallel_calls, to_json
from ....worker.tools.loading import load_registry
from ...errors import Usage
from ...exit_codes import ExitCode
from ...health import controls, pauses
from ...health.controls import read_controls
from ...health.pauses import read_pauses
from ...options import settings
from ...options.listing import server_now
from ...options.parser import add_json, command
from ...options.settings import open_store
from ...views import render

if TYPE_CHECKING:
    from ...options.parser import Subparsers

EXAMPLES = """
toolonce tools check app.tools:tools                      exits 1 if a tool is risky
toolonce tools check app.tools:tools --write tools.json   also writes each spec with its parallel_safe flag
toolonce tools list                                       the tools that workers have published
toolonce tools list --for anthropic                       how a provider takes them, and what it would refuse
toolonce tools list --for openai-responses --json         their definitions for a request to that provider
"""


def add_parser(subparsers: Subparsers) -> None:
    parser = command(
        subparsers, "tools", "Check your tools, or list the published ones", examples=EXAMPLES, store=False
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    check = actions.add_parser("check", help="check a registry: parallel calls, limits, and what a crash would leave")
    where = check.add_mutually_exclusive_group(required=True)
    where.add_argument("registry", nargs="?", metavar="MODULE:REGISTRY", help="module and name of your Registry")
    where.add_argument("--tools", metavar="MODULE:REGISTRY", help="the same, as an option as in `work`")
    check.add_argument(
        "--fanout", type=int, default=DEFAULT_FANOUT, metavar="N", help="calls of one tool in a turn to check for"
    )
    check.add_argument("--write", type=Path, metavar="FILE", help="write the specs as JSON, with parallel_safe flags")
    check.set_defaults(action=_check)
    listed = actions.add_parser("list", help="list the newest spec of each published tool")
    listed.add_argument("--for", dest="dialect", choices=DIALECTS, help="list them as definitions for this dialect")
    settings.add_options(listed)
    listed.set_defaults(action=_list)
    add_json(check, "{tools: [{name, effect, schema, parallel_safe, forwards_key, ...}]}")
    add_json(
        listed,
        "{tools: {NAME: {version, effect, schema, timeout_ms, ...}}, controls, pauses}; with --for "
        "{tools: [the definitions], options: {the request's members that forbid parallel calls, where a tool needs "
        "it}, notes: [{tool, text, refused}]}",
    )


def run(args: argparse.Namespace) -> int:
    code: int = args.action(args)
    return code


def _check(args: argparse.Namespace) -> int:
    if args.fanout < 1:
        raise Usage(f"--fanout {args.fanout}: expected 1 or more")
    verdicts = audit(load_registry(args.registry or args.tools), fanout=args.fanout)
    if args.write:
        _write(args.write, to_json(verdicts))
    if args.json:
        print(to_json(verdicts))
    else:
        _show(verdicts)
    return ExitCode.ENDED_BADLY if any(verdict.is_risky for verdict in verdicts) else ExitCode.DONE


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise Usage(f"--write {file}: {error.strerror}") from error


def _show(verdicts: tuple[Verdict, ...]) -> None:
    rows = [
        (finding.tool, verdict.spec.effect, finding.level, finding.text)
        for verdict in verdicts
        for finding in verdict.findings
    ]
    render.show_table(("tool", "effect", "level", "findings"), rows)
    if forbids_parallel_calls(verdicts):
        render.say("forbid parallel calls in the request, or give these tools order_by or concurrency=1")


def _list(args: argparse.Namespace) -> int:
    with open_store(args) as connection:
        specs = connection.run(published(connection.space)).tools
        limits, paused, now = read_controls(connection), read_pauses(connection), server_now(connection)
    if args.dialect:
        return _list_for(specs, args, connection.place)
    if args.json:
        shown: dict[str, Any] = {name: json.loads(spec.to_json()) for name, spec in sorted(specs.items())}
        limited = [controls.as_json(row) for row in limits]
        render.show_json({"tools": shown, "controls": limited, "pauses": [pauses.as_json(row) for row in paused]})
        return ExitCode.DONE
    if not specs:
        render.say(f"no worker has published a tool in {connection.place}")
    rows = [
        (name, spec.version, spec.effect, spec.queue, f"{spec.timeout_ms / 1000:g} s", render.brief(spec.description))
        for name, spec in sorted(specs.items())
    ]
    render.show_table(("tool", "version", "effect", "queue", "timeout", "what it does"), rows)
    controls.show(limits, now)
    pauses.show(paused, now)
    return ExitCode.DONE


def _list_for(specs: Mapping[str, ToolSpec], args: argparse.Namespace, place: str) -> int:
    found = described(specs.values(), args.dialect)
    if args.json:
        notes = [asdict(note) for note in found.notes]
        render.show_json({"tools": found, "options": found.options, "notes": notes})
    else:
        _show_for(specs, found, place)
    return ExitCode.DONE


def _show_for(specs: Mapping[str, ToolSpec], found: ToolDefinitions, place: str) -> None:
    if not specs:
        render.say(f"no worker has published a tool in {place}")
    rows = [(note.tool, "refused" if note.refused else "note", note.text) for note in found.notes]
    rows += [(name, "ok", "nothing to say") for name in specs.keys() - {note.tool for note in found.notes}]
    render.show_table(("tool", "level", "what to know"), sorted(rows))
    if found.options:
        render.say(f"some may run in parallel with themselves; a request forbids it with {json.dumps(found.options)}")
