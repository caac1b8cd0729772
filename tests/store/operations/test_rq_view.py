"""RQ's own classes look at what we keep, and count right."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from redis import Redis
from rq import Queue
from rq.job import Job, JobStatus
from rq.registry import BaseRegistry, FailedJobRegistry, FinishedJobRegistry, StartedJobRegistry
from rq.serializers import JSONSerializer

from tests.support.servers.rq_view import rq_queue
from tests.support.store.scene import Scene, spec
from toolonce.store.model.states import State
from toolonce.store.operations.pointers import ENTRY
from toolonce.store.operations.rq_registries import ShownRun, Standing, show_runs
from toolonce.store.operations.runs import Run

READ = spec("look", "read")


@pytest.fixture
def rq(real_scene: Scene) -> Iterator[Queue]:
    client = Redis.from_url(real_scene.store.connection.url)  # type: ignore[union-attr]
    with rq_queue(real_scene.space, client, JSONSerializer) as queue:
        yield queue


def count(kind: type[BaseRegistry], rq: Queue) -> int:
    return kind(queue=rq).get_job_count(cleanup=False)


def show(scene: Scene, *runs: Run, how: Standing = Standing.SETTLED) -> int:
    """As the heartbeat of the worker that has these runs."""
    shown = [ShownRun(run.idempotency_key, run.queue, run.token, how) for run in runs]
    return scene.run(show_runs(scene.space, "worker-1", shown))


def test_rq_counts_what_waits_runs_and_ended(real_scene: Scene, rq: Queue) -> None:
    for name in "abcde":
        real_scene.submit(name)
    running, succeeded, failed, unknown = (real_scene.take() for _ in range(4))
    real_scene.settle(succeeded)
    real_scene.fail(failed)
    real_scene.settle(unknown, state=State.UNKNOWN)
    show(real_scene, running, how=Standing.RUNNING)
    show(real_scene, succeeded, failed, unknown)
    assert rq.count == 1
    assert StartedJobRegistry(queue=rq).get_job_ids(cleanup=False) == [running.idempotency_key]
    assert (count(FinishedJobRegistry, rq), count(FailedJobRegistry, rq)) == (1, 2)


def test_rqs_own_cleanup_touches_no_running_call(real_scene: Scene, rq: Queue) -> None:
    run = real_scene.start()
    show(real_scene, run, how=Standing.RUNNING)
    StartedJobRegistry(queue=rq).cleanup()
    assert StartedJobRegistry(queue=rq).get_job_ids() == [run.idempotency_key]
    assert real_scene.state(run.call) is State.RUNNING


def test_rq_reads_the_status_of_our_jobs(real_scene: Scene, rq: Queue) -> None:
    held = real_scene.submit("h", held="approval")
    run = real_scene.start()

    def status(job_id: str) -> JobStatus | None:
        return Job.fetch(job_id, connection=rq.connection, serializer=JSONSerializer).get_status()

    assert status(real_scene.record(held).idempotency_key) is JobStatus.DEFERRED
    show(real_scene, run, how=Standing.RUNNING)
    assert status(run.idempotency_key) is JobStatus.STARTED
    real_scene.retry_later(run, delay_ms=0)
    assert status(run.idempotency_key) is JobStatus.QUEUED
    assert count(StartedJobRegistry, rq) == 0
    again = real_scene.take()
    real_scene.settle(again)
    show(real_scene, again)
    assert status(run.idempotency_key) is JobStatus.FINISHED


def test_our_job_hash_is_the_one_that_rq_itself_enqueues_without_its_empty_fields(real_scene: Scene, rq: Queue) -> None:
    call = real_scene.submit()
    ours = rq.connection.hgetall(real_scene.space.rq_job(real_scene.record(call).idempotency_key))
    theirs_id = rq.enqueue(ENTRY, job_timeout=-1, result_ttl=500, failure_ttl=500, description="pay").id
    theirs = {name: value for name, value in rq.connection.hgetall(real_scene.space.rq_job(theirs_id)).items() if value}
    rq.connection.delete(real_scene.space.rq_job(theirs_id))
    varying = {b"created_at", b"enqueued_at"}
    assert ours.keys() == theirs.keys()
    assert {name: ours[name] for name in ours.keys() - varying} == {
        name: theirs[name] for name in ours.keys() - varying
    }
    assert all(len(ours[name]) == len(theirs[name]) for name in varying)


def test_a_field_that_we_leave_out_is_empty_to_rq(real_scene: Scene, rq: Queue) -> None:
    run = real_scene.start()
    show(real_scene, run, how=Standing.RUNNING)
    job = Job.fetch(run.idempotency_key, connection=rq.connection, serializer=JSONSerializer)
    left_out = (job.started_at, job.ended_at, job.last_heartbeat, job.group_id, job.success_callback)
    assert left_out == (None,) * 5
    assert job.worker_name == "worker-1"


def test_a_retried_call_waits_in_rq_without_the_worker_that_had_it(real_scene: Scene, rq: Queue) -> None:
    run = real_scene.start()
    show(real_scene, run, how=Standing.RUNNING)
    real_scene.fail(run)
    real_scene.retry(run.call)
    assert show(real_scene, run) == 0
    job = Job.fetch(run.idempotency_key, connection=rq.connection, serializer=JSONSerializer)
    assert (job.get_status(), job.worker_name) == (JobStatus.QUEUED, None)


def test_a_finished_job_leaves_rq_after_its_time(real_scene: Scene, rq: Queue) -> None:
    run = real_scene.start()
    assert rq.connection.ttl(real_scene.space.rq_job(run.idempotency_key)) == -1
    real_scene.settle(run)
    show(real_scene, run)
    assert 0 < rq.connection.ttl(real_scene.space.rq_job(run.idempotency_key)) <= 500
    real_scene.store.advance(501_000)
    later = real_scene.start("b")
    real_scene.settle(later)
    show(real_scene, later)
    assert FinishedJobRegistry(queue=rq).get_job_ids(cleanup=False) != [run.idempotency_key]
    assert count(FinishedJobRegistry, rq) == 1


def test_a_job_that_rq_has_forgotten_is_not_brought_back_in_part(real_scene: Scene, rq: Queue) -> None:
    run = real_scene.start()
    real_scene.lose(run)
    rq.connection.delete(real_scene.space.rq_job(run.idempotency_key))
    real_scene.resolve(run.call)
    assert not rq.connection.exists(real_scene.space.rq_job(run.idempotency_key))
    assert count(FinishedJobRegistry, rq) == 0


def test_a_retried_call_has_a_whole_job_again(real_scene: Scene, rq: Queue) -> None:
    run = real_scene.start()
    real_scene.fail(run)
    show(real_scene, run)
    rq.connection.delete(real_scene.space.rq_job(run.idempotency_key))
    real_scene.retry(run.call)
    job = Job.fetch(run.idempotency_key, connection=rq.connection, serializer=JSONSerializer)
    assert (job.func_name, job.origin, job.get_status()) == (ENTRY, rq.name, JobStatus.QUEUED)
    assert rq.connection.ttl(real_scene.space.rq_job(run.idempotency_key)) == -1
    assert count(FailedJobRegistry, rq) == 0


def test_the_jobs_of_settled_calls_that_are_not_listed_are_removed_and_no_others(real_scene: Scene, rq: Queue) -> None:
    settled, retried = real_scene.start("a"), real_scene.start("b")
    real_scene.settle(settled)
    real_scene.fail(retried)
    real_scene.retry(retried.call)
    jobs = [settled.idempotency_key, retried.idempotency_key]
    real_scene.run(show_runs(real_scene.space, "worker-1", (), unlisted=jobs))
    assert [rq.connection.exists(real_scene.space.rq_job(job)) for job in jobs] == [0, 1]


def test_a_run_that_is_over_is_not_shown_as_running_whatever_the_heartbeat_believed(
    real_scene: Scene, rq: Queue
) -> None:
    run = real_scene.start()
    real_scene.settle(run)
    assert show(real_scene, run, how=Standing.RUNNING) == 0
    assert count(StartedJobRegistry, rq) == 0
    assert not rq.connection.hexists(real_scene.space.rq_job(run.idempotency_key), "worker_name")


def test_recovery_removes_what_a_dead_worker_has_shown_and_keeps_what_runs(real_scene: Scene, rq: Queue) -> None:
    over, alive = real_scene.start("a"), real_scene.start("b")
    show(real_scene, over, alive, how=Standing.RUNNING)
    real_scene.settle(over)
    real_scene.repush()
    assert StartedJobRegistry(queue=rq).get_job_ids(cleanup=False) == [alive.idempotency_key]


def test_the_job_holds_no_arguments(real_scene: Scene, rq: Queue) -> None:
    call = real_scene.submit("a", {"api_key": "sk-test-000000"})
    stored = rq.connection.hgetall(real_scene.space.rq_job(real_scene.record(call).idempotency_key))
    assert "sk-test" not in str(stored)
