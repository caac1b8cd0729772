"""The RQ job of a call: a pointer that says "look at this record", and nothing more.

It has the form of RQ's own `Job.create(...).to_dict()` (RQ 3.0; a test compares the two), so that RQ's tools show it
like any job. RQ itself is not imported: harnesses and services need none of it. Nothing of a job is ever read back: the
worker takes the job id from the queue, and the record from the store.
"""

from __future__ import annotations

import json
import zlib
from datetime import UTC, datetime

ENTRY = "toolonce.worker.entry.run"
"""The only dotted path that RQ ever stores. A wire name: it outlives deploys and is never renamed."""


def call_of(job_id: str) -> str:
    """The call key inside a job id (idempotency key)."""
    return job_id.partition("-")[0]


_DATA = zlib.compress(json.dumps((ENTRY, None, [], {})).encode())
"""What RQ's JSON serializer makes of the function's name, its instance, arguments and keyword arguments."""
_LIMITS = ("timeout", "-1", "result_ttl", "500", "failure_ttl", "500")
"""RQ's time limit is not used: the run limit is the tool's. What ended is shown for as long as the scripts keep it."""


def job_fields() -> list[str | bytes]:
    """The job hash as field, value, ...; the scripts add queue, description and status. Fields that are empty are left
    out: `Job.restore` takes one that is missing for one that is empty (RQ 3.0)."""
    moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return ["created_at", moment, "data", _DATA, "enqueued_at", moment, *_LIMITS]
