"""`toolonce doctor`: reports what is wrong with this installation, why it matters, and how to fix it."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from ....store.connections.connection import without_password
from ...exit_codes import ExitCode
from ...health.control_findings import of_the_controls, of_the_pauses
from ...health.findings import Finding, Severity, of_the_store, of_the_workers
from ...health.health_snapshot import HealthSnapshot, take
from ...health.replica_findings import of_the_replicas
from ...health.server_findings import of_the_server
from ...options.parser import add_json, command
from ...options.settings import open_store
from ...views import render

if TYPE_CHECKING:
    from ...options.parser import Subparsers

EXAMPLES = """
toolonce doctor
toolonce doctor --json --strict      for a probe: exits 1 on warnings as well
"""
COLOURS = {Severity.NOTICE: "", Severity.WARNING: "yellow", Severity.ERROR: "red", Severity.DANGER: "bold red"}


def add_parser(subparsers: Subparsers) -> None:
    parser = command(
        subparsers,
        "doctor",
        "Check the installation; exits 1 if calls will not come to rest, 4 if a guarantee does not hold",
        examples=EXAMPLES,
    )
    parser.add_argument("--strict", action="store_true", help="exit 1 on warnings as well")
    add_json(parser, "{store: {url, namespace}, findings: [{code, severity, what, why, mend}]}")


def run(args: argparse.Namespace) -> int:
    with open_store(args, any_kind=True) as connection:
        found = examine(take(connection))
    if args.json:
        store = {"url": without_password(connection.url), "namespace": connection.space.name}
        render.show_json({"store": store, "findings": [as_json(finding) for finding in found]})
    else:
        render.say(f"the store: {connection.place}")
        _show(found)
    return verdict(found, strict=args.strict)


def examine(snapshot: HealthSnapshot) -> list[Finding]:
    """All findings, worst first. Pure."""
    found = [*of_the_server(snapshot), *of_the_replicas(snapshot), *of_the_store(snapshot), *of_the_workers(snapshot)]
    found += [*of_the_controls(snapshot), *of_the_pauses(snapshot)]
    return sorted(found, key=lambda finding: -finding.severity)


def verdict(found: list[Finding], *, strict: bool = False) -> ExitCode:
    """The exit code for the worst finding."""
    worst = max((finding.severity for finding in found), default=Severity.NOTICE)
    if worst is Severity.DANGER:
        return ExitCode.REFUSED
    return ExitCode.ENDED_BADLY if worst >= (Severity.WARNING if strict else Severity.ERROR) else ExitCode.DONE


def as_json(finding: Finding) -> dict[str, object]:
    """A finding as JSON."""
    return {**asdict(finding), "severity": finding.severity.name.lower()}


def _show(found: list[Finding]) -> None:
    for finding in found:
        line = render.plain(f"{finding.severity.name.lower()}: {finding.what} [{finding.code}]")
        line.stylize(COLOURS[finding.severity])
        console = render.console()
        console.print(line)
        console.print(render.plain(f"  why:  {finding.why}"))
        console.print(render.plain(f"  fix:  {finding.mend}"))
    if not found:
        print("nothing is wrong")
