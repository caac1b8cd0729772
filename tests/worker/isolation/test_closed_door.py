"""Nothing that stands in Redis is imported, unpickled or evaluated, whoever has written it there."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from rq import Callback, Queue, SimpleWorker
from rq.job import Job

from tests.support.processes.tools_under_test import thread_tools
from tests.support.processes.workers import Site
from tests.support.servers import rq_view
from tests.support.wait import wait_until
from toolonce.store.model.states import State
from toolonce.worker import entry
from toolonce.worker.runtime.rq_job import Pointer
from toolonce.worker.tools.errors import NotThroughRQ


class _Bomb:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.write_text, (self.path, "exploded")


@pytest.fixture
def rq_queue(site: Site) -> Any:
    client = Redis.from_url(site.url)
    with rq_view.rq_queue(site.connection.space, client) as queue:
        yield queue
    client.close()


def test_planted_jobs_are_refused_and_logged_and_the_worker_lives_on(
    site: Site, rq_queue: Queue, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mark = tmp_path / "exploded"
    rq_queue.enqueue("builtins.eval", f"open({str(mark)!r}, 'w')", job_id="evil-eval")
    rq_queue.enqueue_call(
        "pathlib.Path.touch", (mark,), job_id=f"{'a' * 32}-{'b' * 32}", on_success=Callback(_callback)
    )
    redis = rq_queue.connection
    redis.hset(
        site.connection.space.rq_job("evil-pickle"),
        mapping={"data": pickle.dumps(_Bomb(mark)), "origin": rq_queue.name},
    )
    redis.rpush(rq_queue.key, "evil-pickle", b"\xff\xfe", "../../x", "")

    with site.worker_here(thread_tools):
        key = site.submit("put", what="x")
        site.wait_for(key, State.SUCCEEDED)
        wait_until(lambda: rq_queue.count == 0, description="all entries are gone")

    assert not mark.exists()
    refused = [record.getMessage() for record in caplog.records if record.getMessage().startswith("refused")]
    assert len(refused) == 6
    assert not redis.lrange(f"{rq_queue.key}:intermediate", 0, -1)


def test_rqs_own_worker_cannot_execute_a_pointer(site: Site, rq_queue: Queue) -> None:
    site.publish(thread_tools)
    key = site.submit("put", what="x")

    stock = SimpleWorker([rq_queue], connection=rq_queue.connection, serializer="json")
    stock.log_job_description = False
    stock.work(burst=True, logging_level="CRITICAL")

    assert site.state(key) is State.QUEUED
    assert site.ledger.count() == 0
    with pytest.raises(NotThroughRQ):
        entry.run()


def test_a_call_whose_pointer_rq_has_eaten_runs_all_the_same(site: Site, rq_queue: Queue) -> None:
    site.publish(thread_tools)
    key = site.submit("put", what="x")
    SimpleWorker([rq_queue], connection=rq_queue.connection, serializer="json").work(
        burst=True, logging_level="CRITICAL"
    )

    with site.worker_here(thread_tools, lease_ms=400):
        site.wait_for(key, State.SUCCEEDED)

    assert site.ledger.count("put x") == 1


def test_our_job_class_names_no_code_whatever_the_hash_says(site: Site, rq_queue: Queue, tmp_path: Path) -> None:
    mark = tmp_path / "exploded"
    rq_queue.enqueue(
        "builtins.eval", "1", job_id="evil", on_success=Callback(_callback), on_failure=Callback(_callback)
    )
    rq_queue.connection.hset(site.connection.space.rq_job("evil"), "data", pickle.dumps(_Bomb(mark)))

    job = Pointer.fetch("evil", connection=rq_queue.connection)

    for use in (lambda: job.func, lambda: job.args, lambda: job.func_name, job.perform):
        with pytest.raises(NotThroughRQ):
            use()
    assert [job.success_callback, job.failure_callback, job.stopped_callback] == [None, None, None]
    assert not mark.exists()


def test_one_job_delivered_to_two_slots_of_one_process_has_one_effect(site: Site, rq_queue: Queue) -> None:
    site.publish(thread_tools)
    keys = [site.submit("put", what=str(number)) for number in range(20)]
    jobs = [site.record(key).idempotency_key for key in keys]
    rq_queue.connection.rpush(rq_queue.key, *jobs, *jobs, *jobs)

    with site.worker_here(thread_tools, concurrency=8):
        for key in keys:
            site.wait_for(key, State.SUCCEEDED)
        wait_until(lambda: rq_queue.count == 0, description="all pointers are taken")

    assert sorted(site.ledger.lines()) == sorted(f"put {number}" for number in range(20))


def test_rqs_view_of_the_queue_is_true(site: Site, rq_queue: Queue) -> None:
    site.publish(thread_tools)
    waiting = site.submit("put_and_wait", what="x")
    assert rq_queue.count == 1

    with site.worker_here(thread_tools) as process:
        wait_until(lambda: site.ledger.count("put x"), description="the effect")
        wait_until(lambda: rq_queue.started_job_registry.count == 1, description="one is executing")
        job = Job.fetch(site.record(waiting).idempotency_key, connection=rq_queue.connection, serializer="json")
        assert (job.get_status(), job.worker_name) == ("started", process.name)
        [worker] = SimpleWorker.all(queue=rq_queue)
        wait_until(lambda: SimpleWorker.all(queue=rq_queue)[0].get_state() == "busy", description="it is busy")
        assert worker.name == process.name
        site.ledger.open_gate("x")
        site.wait_for(waiting, State.SUCCEEDED)
        wait_until(lambda: SimpleWorker.all(queue=rq_queue)[0].successful_job_count == 1, description="one is counted")

    assert (rq_queue.count, rq_queue.started_job_registry.count, rq_queue.finished_job_registry.count) == (0, 0, 1)
    assert SimpleWorker.all(queue=rq_queue) == []


def test_rqs_cleanup_does_not_touch_a_finished_call(site: Site, rq_queue: Queue) -> None:
    """O2-02: a leftover entry among the started ones, judged abandoned by RQ, changes nothing."""
    with site.worker_here(thread_tools):
        key = site.submit("put", what="x")
        site.wait_for(key, State.SUCCEEDED)
    ikey = site.record(key).idempotency_key
    rq_queue.connection.zadd(rq_queue.started_job_registry.key, {f"{ikey}:old": 1})

    rq_queue.started_job_registry.cleanup()
    with site.worker_here(thread_tools):
        wait_until(lambda: rq_queue.count == 0, description="whatever RQ has queued again is taken")

    assert site.state(key) is State.SUCCEEDED
    assert site.ledger.count("put x") == 1


def _callback(*args: Any) -> None:
    raise AssertionError("a callback was called")
