"""RQ's own classes, looking at the keys of one namespace: what RQ_KEY_PREFIX does at RQ's import, done for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import RLock
from unittest.mock import patch

from redis import Redis
from rq import Queue, worker_registration
from rq.job import Job
from rq.registry import FailedJobRegistry, FinishedJobRegistry, StartedJobRegistry
from rq.serializers import JSONSerializer
from rq.worker import BaseWorker

from toolonce.store.model.keys import Namespace

REGISTRIES = {StartedJobRegistry: "wip", FailedJobRegistry: "failed", FinishedJobRegistry: "finished"}

# The names belong to RQ's classes, so to the whole process: a second thread waits until the first has put them back.
_alone = RLock()


@contextmanager
def rq_queue(space: Namespace, client: Redis, serializer: type[JSONSerializer] | None = None) -> Iterator[Queue]:
    """The default queue of a namespace as RQ sees it."""
    prefix = space.rq_prefix
    template = prefix.replace("{", "{{").replace("}", "}}")
    with _alone, ExitStack() as patches:
        patches.enter_context(patch.object(Queue, "redis_queue_namespace_prefix", f"{prefix}:queue:"))
        patches.enter_context(patch.object(Queue, "redis_queues_keys", space.rq_queues))
        patches.enter_context(patch.object(Job, "redis_job_namespace_prefix", f"{prefix}:job:"))
        patches.enter_context(patch.object(worker_registration, "WORKERS_BY_QUEUE_KEY", f"{space.rq_workers}:%s"))
        patches.enter_context(patch.object(worker_registration, "REDIS_WORKER_KEYS", space.rq_workers))
        patches.enter_context(patch.object(BaseWorker, "redis_workers_keys", space.rq_workers))
        patches.enter_context(patch.object(BaseWorker, "redis_worker_namespace_prefix", f"{prefix}:worker:"))
        for registry, kind in REGISTRIES.items():
            patches.enter_context(patch.object(registry, "key_template", f"{template}:{kind}:{{0}}"))
        yield Queue(space.queue_name("default"), connection=client, serializer=serializer)
