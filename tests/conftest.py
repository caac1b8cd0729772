"""Fixtures that all tests share, and what must be true when the session ends."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings

from tests.support.processes.leftovers import MARK, bare_modules, end_leftovers
from tests.support.processes.workers import Site
from tests.support.servers.redis_server import RealServer

os.environ[MARK] = uuid4().hex

# What a shell runs in the background, or under nohup, ignores these, and so would every command that a test starts.
for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)

# The machine's speed is no property of the code. A run in CI finds what any run finds: new examples are `make fuzz`.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("default"), derandomize=True, database=None)
settings.register_profile("fuzz", settings.get_profile("default"), max_examples=10_000)
settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.fixture(scope="session", autouse=True)
def _nothing_left_behind() -> Iterator[None]:
    yield
    assert not end_leftovers(grace=5), "processes of the tests ran on after them; they were killed"
    assert not bare_modules(), "imported without `toolonce.`: these are second copies with other classes"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Some tests log a lone surrogate; tests that run side by side send their reports as UTF-8."""
    report = yield
    report.sections = [(name, text.encode("utf-8", "backslashreplace").decode()) for name, text in report.sections]
    return report


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RealServer]:
    """One durable server for the session. Tests keep apart by namespace; one that kills or fills it takes its own."""
    with RealServer() as server:
        yield server


@pytest.fixture
def own_server() -> Iterator[RealServer]:
    """A durable server for this test alone, to be killed, paused and filled."""
    with RealServer() as server:
        yield server


@pytest.fixture
def namespace() -> str:
    """A namespace that no other test uses."""
    return f"test-{uuid4().hex[:12]}"


@pytest.fixture
def site(redis_server: RealServer, namespace: str, tmp_path: Path) -> Iterator[Site]:
    """A namespace on the session's server, a ledger and a client."""
    opened = Site(redis_server.url, namespace, tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def own_site(own_server: RealServer, namespace: str, tmp_path: Path) -> Iterator[Site]:
    """On a server that the test may kill."""
    opened = Site(own_server.url, namespace, tmp_path)
    yield opened
    opened.close()
