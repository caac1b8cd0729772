"""A bench per test: a namespace with two published tools."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.servers.redis_server import RealServer
from tests.support.stream.harness import LOOK, PAY, Bench


@pytest.fixture
def bench(redis_server: RealServer, namespace: str) -> Iterator[Bench]:
    opened = Bench(redis_server.url, namespace, PAY, LOOK)
    yield opened
    opened.close()
