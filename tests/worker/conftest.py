"""A site with a worker that all tests of a module share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.processes.workers import LEASE_MS, Site
from tests.support.servers.redis_server import RealServer


@pytest.fixture(scope="module")
def busy_site(redis_server: RealServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site whose worker process serves the tools under test for all tests of a module."""
    folder = tmp_path_factory.mktemp("site")
    opened = Site(redis_server.url, f"shared-{folder.name}-{folder.parent.name}"[:60], folder)
    with opened.worker(slots=8, lease_ms=2 * LEASE_MS):
        yield opened
    opened.close()
