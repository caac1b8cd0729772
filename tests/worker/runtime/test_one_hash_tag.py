"""All keys and channels of a namespace, RQ's too, carry one hash tag."""

from __future__ import annotations

import os
import re
import subprocess
import sys

from redis import Redis
from redis.exceptions import ResponseError

from tests.support.processes.tools_under_test import thread_tools
from tests.support.processes.workers import Site
from toolonce.store.model.states import State

_WORD = re.compile(r'"((?:\\.|[^"\\])*)"')
"""One word of a line of MONITOR, its escapes as they are."""
SEES = """
import sys
from redis import Redis
from rq import Queue, Worker
client = Redis.from_url(sys.argv[1])
[queue] = Queue.all(client)
print(queue.name, [worker.name for worker in Worker.all(queue=queue)] == [worker.name for worker in Worker.all(client)])
print(len(Worker.all(client)), queue.count)
"""
NO_RQ = """
import sys
import toolonce.store, toolonce.stream, toolonce.worker, toolonce.ops.cli
import toolonce.store.operations.admission, toolonce.stream.harness.client, toolonce.stream.inbox.consumer
import toolonce.worker.runtime.worker_status, toolonce.ops.health.health_snapshot
assert "rq" not in sys.modules
"""


def test_every_key_that_a_worker_and_its_scripts_touch_carries_the_namespaces_hash_tag(site: Site) -> None:
    tag = f"{{{site.namespace}}}:"
    keys: set[str] = set()
    with Redis.from_url(site.url, decode_responses=True) as client, client.monitor() as monitor:
        with site.worker_here(thread_tools):
            site.wait_for(site.submit("put", what="x"), State.SUCCEEDED)
        client.echo("the end")
        while (words := _WORD.findall(line := str(monitor.connection.read_response()))) != ["ECHO", "the end"]:
            if site.namespace in line:  # others use this server
                keys |= set(_keys_of(client, words))

    assert {"call", "rq"} <= {key.removeprefix(tag).partition(":")[0] for key in keys}
    assert {key for key in keys if not key.startswith(tag)} == set()


def _keys_of(client: Redis, words: list[str]) -> list[str]:
    if words[0].upper() in ("PUBLISH", "SUBSCRIBE"):
        return words[1:2]
    try:
        return [str(key) for key in client.command_getkeys(*words)]
    except ResponseError:  # a command without keys
        return []


def test_rqs_own_tools_see_queue_worker_and_jobs_under_the_prefix(site: Site) -> None:
    with site.worker_here(thread_tools):
        site.wait_for(site.submit("put", what="x"), State.SUCCEEDED)
        environment = {**os.environ, "RQ_KEY_PREFIX": site.connection.space.rq_prefix}
        told = subprocess.run(
            [sys.executable, "-c", SEES, site.url], env=environment, capture_output=True, text=True, check=True
        )
    assert told.stdout.splitlines() == [f"{site.connection.space.queue_name('default')} True", "1 0"]


def test_harnesses_and_services_import_no_rq() -> None:
    subprocess.run([sys.executable, "-c", NO_RQ], check=True)
