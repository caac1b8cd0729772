"""The status that a worker publishes, and how others read it: beside RQ's own fields, in RQ's worker hash.

RQ's tools show the worker as one of theirs; ours show in addition what it is doing. For people only: where it differs
from a record, the record is right.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from ...store.connections.connection import Connection

FIELD = "toolonce"
LISTED_S = 105
"""How long a worker stays listed after its last heartbeat; what is left of it tells the age, by Redis time."""
BEATS_MISSED = 3


@dataclass(frozen=True, slots=True)
class Doing:
    """One call that a worker runs."""

    call: str
    tool: str
    attempt: int
    since: float
    """Unix seconds."""


@dataclass(frozen=True, slots=True)
class Report:
    """The status that a worker has published.

    Attributes:
        state: ``working``, ``draining`` or ``stopped``.
        abandoned: threads whose handler overran its limit and has not come back.
        doing: the calls it runs, the longest running first; at most 50.
        specs: tool -> digest of its spec, by which workers with different specs are found.
        grace_s, lease_ms, replicas: the options it was started with; 0 where it does not say.
        beat_s: how often it gives a heartbeat at least; 0 where it does not say.
        lacks_replicas: fewer answer than that: it claims no mutating call.
    """

    namespace: str
    state: str
    slots: int
    busy: int
    succeeded: int
    failed: int
    retried: int
    interrupted: int
    given_back: int
    refused_jobs: int
    abandoned: int
    version: str
    tools: Sequence[str] = ()
    doing: Sequence[Doing] = ()
    specs: Mapping[str, str] = field(default_factory=dict)
    grace_s: float = 0
    lease_ms: int = 0
    beat_s: float = 0
    replicas: str = "0"
    lacks_replicas: bool = False

    def to_json(self) -> str:
        return json.dumps(asdict(self))


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker as others see it; `report` is None for one that is not ours."""

    name: str
    hostname: str
    pid: int
    queues: tuple[str, ...]
    state: str
    started_at: str
    heard_s: float
    """Seconds since its last heartbeat: by Redis time, where the worker says how often it gives one."""
    report: Report | None = None
    raw: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def is_silent(self) -> bool:
        """Whether several heartbeats in a row did not come: killed, frozen, or cut off from the store."""
        beat_s = self.report.beat_s if self.report else 0
        return 0 < BEATS_MISSED * beat_s < self.heard_s


def read_workers(connection: Connection) -> tuple[WorkerRow, ...]:
    """The workers of this namespace by name: those that have not signed off, for `LISTED_S` after their last sign of
    life. One that was killed is among them; see `WorkerRow.is_silent`.

    Raises:
        StoreUnavailable: the store does not answer.
    """
    rows = []
    for key in sorted(connection.command("SMEMBERS", connection.space.rq_workers)):
        flat = connection.command("HGETALL", key)
        left_ms = int(connection.command("PTTL", key)) if flat else 0
        try:
            row = _row(key.decode().rpartition(":")[2], _text(flat), left_ms) if flat else None
        except ValueError:  # another program's worker, of another release of RQ
            continue
        if row and row.report and row.report.namespace == connection.space.name and "death" not in row.raw:
            rows.append(row)
    return tuple(rows)


def _row(name: str, stored: dict[str, str], left_ms: int) -> WorkerRow:
    report = _report(stored.get(FIELD, ""))
    return WorkerRow(
        name=name,
        hostname=stored.get("hostname", ""),
        pid=int(stored.get("pid") or 0),
        queues=tuple(queue for queue in stored.get("queues", "").split(",") if queue),
        state=stored.get("state", ""),
        started_at=stored.get("birth", ""),
        heard_s=_heard_s(stored.get("last_heartbeat", ""), left_ms if report and report.beat_s else 0),
        report=report,
        raw=stored,
    )


def _heard_s(last: str, left_ms: int) -> float:
    """Each heartbeat sets the time that is left; without one, two clocks have to agree."""
    if left_ms > 0:
        return max(0.0, LISTED_S - left_ms / 1000)
    return max(0.0, time.time() - _seconds(last)) if last else float("inf")


def _report(text: str) -> Report | None:
    try:
        stored = json.loads(text)
        doing = tuple(Doing(**item) for item in stored.pop("doing", ()))
        return Report(**stored, doing=doing)
    except (ValueError, TypeError):  # none of ours, or of a release with other fields
        return None


def _seconds(moment: str) -> float:
    return datetime.strptime(moment, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC).timestamp()


def _text(flat: Any) -> dict[str, str]:
    pairs = flat.items() if isinstance(flat, dict) else zip(flat[::2], flat[1::2], strict=True)
    return {name.decode(): value.decode("utf-8", "replace") for name, value in pairs}
