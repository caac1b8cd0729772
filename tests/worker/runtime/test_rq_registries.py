"""RQ's registries show what a worker runs and has settled, as of its last heartbeat."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from redis import Redis
from rq.job import Job

from tests.support.processes.workers import Site
from tests.support.servers.rq_view import rq_queue
from tests.support.wait import wait_until
from toolonce.store.operations.rq_registries import LISTED
from toolonce.worker import Registry


@pytest.fixture
def client(site: Site) -> Iterator[Redis]:
    with Redis.from_url(site.url) as client:
        yield client


def test_a_worker_shows_the_call_it_runs_and_then_that_it_has_finished(site: Site, client: Redis) -> None:
    tools, may_end = Registry(), threading.Event()

    @tools.tool(effect="mutating")
    def wait() -> None:
        assert may_end.wait(20)

    site.publish(tools)
    key = site.submit("wait")
    job = site.record(key).idempotency_key
    with rq_queue(site.connection.space, client) as queue, site.worker_here(tools) as process:
        started, finished = queue.started_job_registry, queue.finished_job_registry
        wait_until(lambda: started.get_job_ids(cleanup=False) == [job])
        assert Job.fetch(job, connection=client, serializer="json").worker_name == process.name
        assert finished.get_job_count(cleanup=False) == 0
        may_end.set()
        wait_until(lambda: finished.get_job_ids(cleanup=False) == [job])
        assert started.get_job_count(cleanup=False) == 0


def test_a_worker_that_ends_leaves_nothing_shown_as_running(site: Site, client: Redis) -> None:
    tools = Registry()
    tools.tool(name="work")(lambda: None)
    site.publish(tools)
    with site.worker_here(tools):
        site.submit_all([("work", {})] * 5)
        wait_until(site.at_rest)
    with rq_queue(site.connection.space, client) as queue:
        assert queue.started_job_registry.get_job_count(cleanup=False) == 0
        assert queue.finished_job_registry.get_job_count(cleanup=False) == 5


def test_of_many_settled_calls_the_newest_are_listed_and_other_jobs_are_gone(site: Site, client: Redis) -> None:
    tools, go, calls = Registry(), threading.Event(), LISTED + 60
    tools.tool(name="work", effect="mutating")(lambda: go.wait(20))
    site.publish(tools)
    keys = site.submit_all([("work", {})] * calls)
    jobs = [site.record(key).idempotency_key for key in keys]
    with site.worker_here(tools, concurrency=4):
        go.set()
        wait_until(site.at_rest)
    with rq_queue(site.connection.space, client) as queue:
        listed = set(queue.finished_job_registry.get_job_ids(cleanup=False))
    kept = {job for job in jobs if client.exists(site.connection.space.rq_job(job))}
    assert kept == listed
    assert len(listed) >= LISTED
