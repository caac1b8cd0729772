"""The RQ job of a call: a pointer that says "look at this record", and nothing more.

Built by RQ's own `Job.create(...).to_dict()` (RQ 3.0), so that RQ's tools show it like any job. Nothing of it is ever
read back: the worker takes the job id from the queue, and the record from the store.
"""

from __future__ import annotations

from functools import cache

from redis import Redis
from rq.job import Job, JobStatus
from rq.serializers import JSONSerializer
from rq.utils import now, utcformat

ENTRY = "toolonce.worker.entry.run"
"""The only dotted path that RQ ever stores. A wire name: it outlives deploys and is never renamed."""


def call_of(job_id: str) -> str:
    """The call key inside a job id (idempotency key)."""
    return job_id.partition("-")[0]


def job_fields() -> list[str | bytes]:
    """The job hash as field, value, ...; the scripts add queue, description and status. Fields that are empty are left
    out: `Job.restore` takes one that is missing for one that is empty (RQ 3.0)."""
    moment = utcformat(now())
    out: list[str | bytes] = []
    for name, value in _template().items():
        out += (name, moment if name in ("created_at", "enqueued_at") else value)
    return out


@cache
def _template() -> dict[str, str | bytes]:
    job = Job.create(
        ENTRY,
        connection=Redis(),  # never connected: creating a job sends nothing
        serializer=JSONSerializer,
        status=JobStatus.QUEUED,
        timeout=-1,  # RQ's time limit is not used: the run limit is the tool's
        result_ttl=500,
        failure_ttl=500,
        description="",
    )
    job.enqueued_at = now()
    stored = job.to_dict(include_meta=False, include_result=False)
    return {
        name: value if isinstance(value, bytes) else str(value)
        for name, value in stored.items()
        if value != "" and name not in ("origin", "description", "status")
    }
