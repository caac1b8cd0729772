"""An inbox whose consumer runs when the test says so; modules with other needs have a `box` of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.stream.harness import Bench
from tests.support.stream.inbox import Inbox
from toolonce.stream.inbox.consumer import Consumer


@pytest.fixture
def box(bench: Bench) -> Iterator[Inbox]:
    """`step` lets the consumer take what is there."""
    box = Inbox(bench)
    consumer = Consumer(bench.store.connection, name="one")
    box.step = lambda: consumer.step(0.01)  # type: ignore[attr-defined]
    yield box
    consumer.close()
