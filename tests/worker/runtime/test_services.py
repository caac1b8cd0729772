"""The long-lived parts of a worker process: one contract for how each starts and stops."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from tests.support.processes.workers import Site
from toolonce.store.model.keyring import Keyring
from toolonce.worker import Registry
from toolonce.worker.execution.service import Service, running
from toolonce.worker.runtime.process import Options, Process
from toolonce.worker.runtime.signals import Signals

NAMES = (
    "Signals", "ProcessPool", "Replicas", "Registration", "Leases", "RunLimits", "OnLoop", "ReconcileLoop",
    "Maintenance", "Slots",
)  # fmt: skip


def soon() -> float:
    return time.monotonic() + 10


@pytest.fixture
def services(site: Site) -> Iterator[dict[str, Service]]:
    """Those of a worker in which each of them has something to do."""
    registry = Registry()

    @registry.tool(effect="mutating")
    def pay() -> None: ...

    pay.reconcile(lambda: None)

    @registry.tool(isolation="process")
    def compute() -> None: ...

    process = Process(site.connection, registry, Options(concurrency=2, replicas="all"), keyring=Keyring())
    made = process.services(Signals())
    yield {type(service).__name__: service for service in made}
    for service in reversed(made):
        service.stop(soon())


def test_these_are_all_services_of_a_process(services: dict[str, Service]) -> None:
    assert tuple(services) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_stop_before_the_start_and_a_second_stop_are_harmless(services: dict[str, Service], name: str) -> None:
    service = services[name]
    service.stop(soon())
    stops_early = service.wait(soon())
    service.start()
    service.start()
    service.stop(soon())
    service.stop(soon())

    assert stops_early
    assert service.wait(soon())


@dataclass
class Part:
    """A service that writes down what it is told."""

    name: str
    told: list[str]
    fails: tuple[str, ...] = field(default=())

    def start(self) -> None:
        self._tell("start")

    def stop(self, deadline: float) -> None:
        self._tell("stop")

    def wait(self, deadline: float) -> bool:
        return True

    def _tell(self, what: str) -> None:
        self.told.append(f"{what} {self.name}")
        if what in self.fails:
            raise OSError(f"{what} {self.name}")


def test_a_failing_start_stops_those_before_it_in_reverse_order() -> None:
    told: list[str] = []
    parts = [Part("a", told), Part("b", told), Part("c", told, ("start",)), Part("d", told)]

    with pytest.raises(OSError, match="start c"), running(parts, within_s=1):
        told.append("works")

    assert told == ["start a", "start b", "start c", "stop c", "stop b", "stop a"]


def test_a_failing_stop_keeps_no_other_part_from_being_stopped() -> None:
    told: list[str] = []

    with pytest.raises(OSError, match="stop b"), running([Part("a", told), Part("b", told, ("stop",))], within_s=1):
        told.append("works")

    assert told == ["start a", "start b", "works", "stop b", "stop a"]
