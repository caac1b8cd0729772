"""What is wrong between the primary, its replicas and the workers that need them. Pure; see `findings`."""

from __future__ import annotations

from collections.abc import Iterator

from ...store.connections.replication import following
from .findings import Finding, Severity
from .health_snapshot import HealthSnapshot

APART_MS = 1_000
"""Clocks of one time service differ by far less; leases are a few seconds at least."""


def of_the_replicas(snapshot: HealthSnapshot) -> Iterator[Finding]:
    """All rules about replicas, and about clocks that a failover puts in the primary's place."""
    yield from _required(snapshot)
    yield from _clocks(snapshot)


def _required(snapshot: HealthSnapshot) -> Iterator[Finding]:
    attached = len(following(snapshot.info))
    there = max(attached, snapshot.replicas)
    asked = {worker.report.replicas for worker in snapshot.live if worker.report}
    numbers = {int(word) for word in asked if word != "all"}
    if attached and snapshot.config["min-replicas-to-write"] == "0":
        yield Finding(
            "loose_replication", Severity.NOTICE, "the primary takes writes also when it is cut off from its replicas",
            "calls that it admits then are lost in a failover", "CONFIG SET min-replicas-to-write 1, on all of them",
        )  # fmt: skip
    if there and 0 in numbers:
        yield Finding(
            "no_replicas_required", Severity.WARNING, f"there are {there} replicas, and workers that need none",
            "a failover loses the newest claims, and a partition has two sides: a mutating call may be entered twice",
            "toolonce work --replicas all",
        )  # fmt: skip
    if small := sorted(number for number in numbers if 0 < number < there):
        yield Finding(
            "few_replicas_required", Severity.WARNING, f"there are {there} replicas, and workers that need {small[0]}",
            "WAIT does not say which replica has a claim: one that has it not may be promoted, and the call run twice",
            "toolonce work --replicas all, once all are back",
        )  # fmt: skip
    if any(worker.report and worker.report.lacks_replicas for worker in snapshot.live):
        yield Finding(
            "replicas_missing", Severity.ERROR, f"workers need more replicas than answer: {attached} of {there} follow",
            "no mutating call is run; reads go on",
            "bring the replicas back; or, for good, see the runbook on lost replicas",
        )  # fmt: skip


def _clocks(snapshot: HealthSnapshot) -> Iterator[Finding]:
    far = {place: ms for place, ms in snapshot.clocks.items() if abs(ms) > APART_MS}
    if far:
        worst = max(far, key=lambda place: abs(far[place]))
        yield Finding(
            "clocks_differ", Severity.WARNING,
            f"the clock of {worst} is {abs(far[worst]) / 1000:.1f} s {'ahead of' if far[worst] > 0 else 'behind'} "
            "the primary's", "a failover moves leases and deadlines by that much; log lines do not fit together",
            "let one time service keep the clocks of all hosts (chrony, ntpd)",
        )  # fmt: skip
