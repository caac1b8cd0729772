"""The store on two servers: a real one, and fakeredis where no claim about the server is made."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.servers.redis_server import RealServer
from tests.support.store.clocked_store import ClockedStore
from tests.support.store.scene import Scene


@pytest.fixture(params=["fake", "real"])
def store(request: pytest.FixtureRequest, namespace: str) -> Iterator[ClockedStore]:
    """A store on the test's clock, once on fakeredis and once on a real server."""
    if request.param == "fake":
        opened = ClockedStore.fake(namespace)
    else:
        opened = ClockedStore.real(request.getfixturevalue("redis_server").url, namespace)
    yield opened
    opened.close()


@pytest.fixture
def real_store(redis_server: RealServer, namespace: str) -> Iterator[ClockedStore]:
    """A store on the test's clock, on a real server."""
    opened = ClockedStore.real(redis_server.url, namespace)
    yield opened
    opened.close()


@pytest.fixture
def scene(store: ClockedStore) -> Scene:
    return Scene(store)


@pytest.fixture
def real_scene(real_store: ClockedStore) -> Scene:
    return Scene(real_store)
