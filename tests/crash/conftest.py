"""Processes that crashes happen to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.crash.process_starter import ProcessStarter


@pytest.fixture(scope="session")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessStarter]:
    """Cheap processes for tests that need many."""
    with ProcessStarter(tmp_path_factory.mktemp("processes")) as opened:
        yield opened
