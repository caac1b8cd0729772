"""Sites that crashes happen on: a namespace on the session's server, or a server of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.crash.process_starter import ProcessStarter
from tests.support.processes.workers import Site
from tests.support.servers.redis_server import RealServer


@pytest.fixture
def site(redis_server: RealServer, namespace: str, tmp_path: Path) -> Iterator[Site]:
    opened = Site(redis_server.url, namespace, tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def own_site(own_server: RealServer, namespace: str, tmp_path: Path) -> Iterator[Site]:
    """On a server that the test may kill."""
    opened = Site(own_server.url, namespace, tmp_path)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessStarter]:
    """Cheap processes for tests that need many."""
    with ProcessStarter(tmp_path_factory.mktemp("processes")) as opened:
        yield opened
