"""`toolonce rq-env`: RQ's own tools see our queues with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes.command_line import CommandLine
from tests.support.processes.workers import Site
from tests.support.servers.redis_server import RealServer
from toolonce.worker import Registry


def test_rq_info_shows_our_queue_in_this_environment(
    redis_server: RealServer, namespace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    registry = Registry()

    @registry.tool
    def add(a: int) -> int:
        return a

    site = Site(redis_server.url, namespace, tmp_path)
    site.publish(registry)
    site.submit("add", a=1)
    site.submit("add", a=2)
    said = CommandLine(capsys, ("--redis", redis_server.url, "--namespace", namespace))("rq-env")
    site.close()

    rq = Path(sys.executable).with_name("rq")
    shown = subprocess.run(
        ["sh", "-c", f'{said.out}\n"{rq}" info --raw --only-queues'], capture_output=True, text=True, check=True
    )

    assert f"queue {namespace}.default 2" in shown.stdout


def test_programs_get_the_same_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    said = CommandLine(capsys, ())("rq-env", "--redis", "redis://h:1/2", "--namespace", "n", "--json")

    assert said.json == {"RQ_KEY_PREFIX": "{n}:rq", "RQ_REDIS_URL": "redis://h:1/2"}


def test_a_url_of_sentinel_is_not_given_to_rq(capsys: pytest.CaptureFixture[str]) -> None:
    said = CommandLine(capsys, ())("rq-env", "--redis", "redis+sentinel://h:26379/primary", "--namespace", "n")

    assert said.out.splitlines() == ["export RQ_KEY_PREFIX='{n}:rq'"]
    assert "rq info --url" in said.err


def test_a_namespace_that_there_cannot_be_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    said = CommandLine(capsys, ())("rq-env", "--redis", "redis://h:1", "--namespace", "a.b")

    assert said.code == 2
    assert "a.b" in said.err
