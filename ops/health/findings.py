"""What is wrong, why it matters and what fixes it: one rule per finding, over one reading of the snapshot. Pure.

Decides the rules about the store's contents and its workers; those about the server are in `server_findings`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from ...store.model.specs import Effect
from ...store.model.states import State
from ...store.operations.queries import PageRow
from ...store.operations.recovery import DAY_MS
from ...stream.harness.queue_limits import DEFAULTS
from ..options.listing import behind_doubt
from ..views.render import SHOWN_DIGITS, age
from .health_snapshot import MOST_QUARANTINED, HealthSnapshot

QUEUE_LIMIT = DEFAULTS["queue_limit"]
"""Where harnesses begin to refuse turns, unless they were told otherwise."""
WAITING_MS = 300_000
HELD_ENTRY_MS = 60_000
CLOCK_TOLERATED_MS = 1_000
ASKED_IN_VAIN = 3
"""Times that one call was reconciled after which its tool's `reconcile` is a finding."""


class Severity(IntEnum):
    """How bad it is; the worst one decides the exit code."""

    NOTICE = 0
    WARNING = 1
    ERROR = 2
    """Calls do not come to rest, or will not soon."""
    DANGER = 3
    """A guarantee does not hold: calls may be lost or run twice."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found. `code` is a stable word for alarms; `mend` the command that helps."""

    code: str
    severity: Severity
    what: str
    why: str
    mend: str


def of_the_store(snapshot: HealthSnapshot) -> Iterator[Finding]:
    """What the counters, leases, queues and inboxes say."""
    if snapshot.barred:
        yield Finding(
            "barred", Severity.ERROR, f"user {snapshot.user!r} may not read the store: {snapshot.barred}",
            "commands and workers under this user fail", "give it the operator role of ops/deploy/users.acl",
        )  # fmt: skip
    if snapshot.stats is None:
        return
    yield from _ledger(snapshot)
    yield from _clock(snapshot)
    yield from _queues(snapshot)
    yield from _inboxes(snapshot)


def of_the_workers(snapshot: HealthSnapshot) -> Iterator[Finding]:
    """What workers and published tools say."""
    if not snapshot.live and snapshot.specs.tools:
        yield Finding(
            "no_worker", Severity.ERROR, "no worker lives",
            "calls are admitted and nobody runs them; expired leases are not ended",
            "toolonce work --tools MODULE:REGISTRY",
        )  # fmt: skip
    if not snapshot.live and not (snapshot.specs.tools or snapshot.specs.unreadable):
        yield Finding(
            "no_tools", Severity.WARNING, "no worker has published a tool in this namespace", "no calls are admitted",
            "toolonce work --tools MODULE:REGISTRY; if one runs, compare `toolonce url --json` in both terminals",
        )  # fmt: skip
    yield from _silent(snapshot)
    yield from _held(snapshot)
    yield from _drift(snapshot)
    yield from _times(snapshot)
    secret = sorted(spec.name for spec in snapshot.specs.tools.values() if spec.secret or spec.secret_result)
    if secret and not snapshot.has_keys:
        yield Finding(
            "no_keys", Severity.NOTICE, f"this process has no keys; {', '.join(secret)} have secret fields",
            "harnesses without keys cannot submit their calls", "set TOOLONCE_KEYS where harnesses run",
        )  # fmt: skip


def _ledger(snapshot: HealthSnapshot) -> Iterator[Finding]:
    stats = snapshot.stats
    assert stats is not None
    if not stats.balanced:
        yield Finding(
            "unbalanced", Severity.DANGER,
            f"{stats.counts.get('admitted', 0)} admitted is not {stats.counts.get('settled', 0)} settled + "
            f"{stats.open} open", "a call was lost, or someone wrote to the store by hand",
            "toolonce doctor --json > report.json, and report it with the version",
        )  # fmt: skip
    if "went_back" in stats.flags:
        because = f": {stats.flags['went_back_because']}" if "went_back_because" in stats.flags else ""
        yield Finding(
            "went_back", Severity.DANGER,
            "the store has lost writes (restored, or failed over to a stale replica)" + because,
            "calls that it has forgotten may have run; mutating calls are held until someone has compared",
            "toolonce recover --accept-loss --reason R",
        )  # fmt: skip
    if "full" in stats.flags:
        yield Finding(
            "full", Severity.ERROR, "admission is stopped at the memory watermark",
            "harnesses are refused; running calls still settle",
            "toolonce purge --state succeeded --older-than 1d, or raise maxmemory",
        )  # fmt: skip
    if doubtful := stats.stored[State.UNKNOWN]:
        oldest = age(stats.read_at - stats.oldest_at[State.UNKNOWN])
        yield Finding(
            "unknown", Severity.WARNING, f"{doubtful} calls are in doubt, the oldest for {oldest}",
            "each was entered and nobody knows how it ended; no timer will decide it",
            "toolonce calls --state unknown",
        )  # fmt: skip
    yield from _doubts(snapshot)
    if snapshot.late_leases:
        yield Finding(
            "late_leases", Severity.ERROR, f"{snapshot.late_leases} leases ran out and nobody has ended them",
            "no worker sweeps: calls of dead workers do not come to rest", "toolonce recover, and start a worker",
        )  # fmt: skip


def _clock(snapshot: HealthSnapshot) -> Iterator[Finding]:
    """A step back that recovery has dealt with is told for a day; one that nobody has seen yet, as long as it lasts."""
    stats = snapshot.stats
    assert stats is not None
    since = stats.read_at - int(stats.flags.get("clock_back_at", 0))
    behind = snapshot.clock_mark - stats.read_at
    if behind > CLOCK_TOLERATED_MS:
        how, then = (
            f"is {age(behind)} behind what it was",
            "leases and waits are that much longer until a sweep",
        )
    elif 0 <= since <= DAY_MS:
        how = f"went back by {age(int(stats.flags.get('clock_back_by', 0)))}, {age(since)} ago"
        then = "every lease was granted again, and waits were cut to what they were meant to be"
    else:
        return
    yield Finding(
        "clock_went_back", Severity.WARNING, f"the server's clock {how}", then,
        "let the server's time service slew its clock, not step it (chrony, ntpd)",
    )  # fmt: skip


def _doubts(snapshot: HealthSnapshot) -> Iterator[Finding]:
    assert snapshot.stats is not None
    now = snapshot.stats.read_at
    asked: defaultdict[str, list[PageRow]] = defaultdict(list)
    for row in snapshot.doubtful:
        if row.fields.asked >= ASKED_IN_VAIN:
            asked[row.fields.tool].append(row)
    for tool, rows in sorted(asked.items()):
        most = max(rows, key=lambda row: row.fields.asked)
        yield Finding(
            "reconcile_fails", Severity.WARNING,
            f"the reconcile of {tool} does not tell what became of {len(rows)} calls; asked {most.fields.asked} "
            f"times about {most.key[:SHOWN_DIGITS]}, it said last: {most.fields.heard or ''}",
            "these calls stay in doubt until it answers, or a person does",
            f"correct the reconcile, or toolonce calls --state unknown --tool {tool}",
        )  # fmt: skip
    behind = behind_doubt(snapshot.held)
    if behind:
        named = ", ".join(
            f"{row.key[:SHOWN_DIGITS]} ({row.fields.tool}) for {age(now - row.entered_at)} behind "
            f"{row.waits_for[0][:SHOWN_DIGITS]}"
            for row in behind
            if row.waits_for
        )
        yield Finding(
            "held_behind_doubt", Severity.WARNING, f"{len(behind)} calls wait behind calls in doubt: {named}",
            "they have no deadline while the one ahead is in doubt; nobody but a person, or its reconcile, ends that",
            "toolonce resolve or retry the ones ahead; toolonce cancel those that are to wait no longer",
        )  # fmt: skip


def _queues(snapshot: HealthSnapshot) -> Iterator[Finding]:
    stats = snapshot.stats
    assert stats is not None
    served = {queue.removeprefix(f"{snapshot.namespace}.") for worker in snapshot.live for queue in worker.queues}
    for queue, (waiting, _) in stats.queues.items():
        if waiting and queue not in served and queue not in snapshot.paused_queues:
            yield Finding(
                "unserved_queue", Severity.ERROR, f"{waiting} calls wait in queue {queue!r}, which no worker serves",
                "they wait until their deadline and expire", f"toolonce work --tools ... --queue {queue}",
            )  # fmt: skip
        if waiting > QUEUE_LIMIT // 2:
            yield Finding(
                "deep_queue", Severity.WARNING, f"queue {queue!r} holds {waiting} calls",
                f"at {QUEUE_LIMIT} harnesses are refused",
                f"toolonce resume queue:{queue}" if queue in snapshot.paused_queues
                else "start more workers, or raise --concurrency",
            )  # fmt: skip
    oldest = stats.oldest_at[State.QUEUED]
    wait_for_workers = stats.counts["state:queued"] > snapshot.paused_calls
    waited_for = [row for row in snapshot.controls if row.use and row.use.waiting]
    if oldest and stats.read_at - oldest > WAITING_MS and wait_for_workers:
        yield Finding(
            "slow_queue", Severity.WARNING, f"the oldest queued call has waited {age(stats.read_at - oldest)}",
            "queue deadlines pass; calls expire without having run", "toolonce workers; start more of them"
            + "".join(f", or raise the {row.kind} of {row.target}, for which calls wait" for row in waited_for[:3]),
        )  # fmt: skip


def _inboxes(snapshot: HealthSnapshot) -> Iterator[Finding]:
    if snapshot.quarantined:
        number = f"{len(snapshot.quarantined)} or more" if len(snapshot.quarantined) == MOST_QUARANTINED else "some"
        yield Finding(
            "quarantined", Severity.WARNING,
            f"{number} inbox entries were put aside in the last day, the newest because: {snapshot.quarantined[0]}",
            "nothing of them was stored; their harnesses were told", "RUNBOOK.md: Quarantined inbox entries",
        )  # fmt: skip
    for tool in sorted(snapshot.specs.unreadable):
        yield Finding(
            "unreadable_spec", Severity.ERROR, f"the published spec of tool {tool!r} cannot be read by this release",
            "harnesses of this release refuse calls of this tool", "upgrade toolonce here, or start its worker again",
        )  # fmt: skip
    for inbox in snapshot.inboxes:
        if inbox.held_ms > HELD_ENTRY_MS or (inbox.waiting and not inbox.taken and inbox.waiting > 100):
            yield Finding(
                "inbox_stuck", Severity.ERROR,
                f"the inbox of {inbox.tenant!r} is not consumed: {inbox.waiting} wait, {inbox.taken} taken",
                "harnesses that write to the inbox get no answers", "toolonce consume",
            )  # fmt: skip


def _silent(snapshot: HealthSnapshot) -> Iterator[Finding]:
    for worker in snapshot.workers:
        if worker.is_silent:
            heard = age(round(worker.heard_s * 1000))
            yield Finding(
                "silent_worker", Severity.WARNING,
                f"worker {worker.name} (pid {worker.pid} on {worker.hostname}) gave no heartbeat for {heard}",
                "it was killed, is frozen or cut off: what it ran goes on, or is in doubt, once its leases have ended",
                "look at its process; the entry goes by itself if it is dead",
            )  # fmt: skip


def _held(snapshot: HealthSnapshot) -> Iterator[Finding]:
    if snapshot.without_worker:
        tools = ", ".join(sorted(snapshot.without_worker))
        yield Finding(
            "held_no_worker", Severity.WARNING,
            f"{sum(snapshot.without_worker.values())} calls are held: no worker serves {tools} as they need it",
            "they go on once a worker with that tool, version, queue and keys comes, and else expire at their deadline",
            "toolonce calls --state held; toolonce work with a registry that has the tool",
        )  # fmt: skip


def _drift(snapshot: HealthSnapshot) -> Iterator[Finding]:
    digests: defaultdict[str, set[str]] = defaultdict(set)
    releases: set[str] = set()
    for worker in snapshot.live:
        if worker.report:
            releases.add(worker.report.version)
            for tool, digest in worker.report.specs.items():
                digests[tool].add(digest)
    if drifted := sorted(tool for tool, found in digests.items() if len(found) > 1):
        yield Finding(
            "spec_drift", Severity.WARNING, f"workers differ in the spec of {', '.join(drifted)}",
            "calls are validated against the newest spec and may be refused, or fail, at the other workers",
            "finish the deployment; `toolonce workers` shows who is old",
        )  # fmt: skip
    if len(releases) > 1:
        yield Finding(
            "mixed_releases", Severity.NOTICE, f"workers of releases {', '.join(sorted(releases))} run together",
            "fine during an upgrade, a surprise after it", "finish the upgrade",
        )  # fmt: skip


def _times(snapshot: HealthSnapshot) -> Iterator[Finding]:
    graces = [worker.report.grace_s for worker in snapshot.live if worker.report and worker.report.grace_s]
    tools = snapshot.specs.tools.values()
    cut = sorted(
        spec.name
        for spec in tools
        if graces and spec.effect is Effect.MUTATING and (not spec.timeout_ms or spec.timeout_ms > min(graces) * 1000)
    )
    if cut:
        yield Finding(
            "short_grace", Severity.WARNING,
            f"stopping a worker waits {min(graces):g} s, but {', '.join(cut)} may run longer",
            "each deployment may leave such calls in doubt",
            "raise --grace, and the supervisor's stop time above it; or lower the tools' timeout",
        )  # fmt: skip
    if long := sorted(spec.name for spec in tools if spec.deadline_ms > snapshot.retention.body_ms):
        yield Finding(
            "short_retention", Severity.WARNING,
            f"calls of {', '.join(long)} may wait longer than answers are kept ({age(snapshot.retention.body_ms)})",
            "a harness that comes back in time finds the answer of an earlier call gone",
            "shorten the tools' deadline",
        )  # fmt: skip
