"""RQ's own classes, looking at the keys of one namespace: what RQ_KEY_PREFIX does at RQ's import, done for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from redis import Redis
from rq import Queue
from rq.job import Job
from rq.registry import FailedJobRegistry, FinishedJobRegistry, StartedJobRegistry
from rq.serializers import JSONSerializer

from toolonce.store.model.keys import Namespace

REGISTRIES = {StartedJobRegistry: "wip", FailedJobRegistry: "failed", FinishedJobRegistry: "finished"}


@contextmanager
def rq_queue(space: Namespace, client: Redis, serializer: type[JSONSerializer] | None = None) -> Iterator[Queue]:
    """The default queue of a namespace as RQ sees it."""
    prefix = space.rq_prefix
    template = prefix.replace("{", "{{").replace("}", "}}")
    with ExitStack() as patches:
        patches.enter_context(patch.object(Queue, "redis_queue_namespace_prefix", f"{prefix}:queue:"))
        patches.enter_context(patch.object(Queue, "redis_queues_keys", space.rq_queues))
        patches.enter_context(patch.object(Job, "redis_job_namespace_prefix", f"{prefix}:job:"))
        for registry, kind in REGISTRIES.items():
            patches.enter_context(patch.object(registry, "key_template", f"{template}:{kind}:{{0}}"))
        yield Queue(space.queue_name("default"), connection=client, serializer=serializer)
