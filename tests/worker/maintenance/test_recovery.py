"""The sweep of a worker: when it sets held calls going."""

from __future__ import annotations

import threading
import time

from tests.support.processes.workers import Site
from tests.support.store.live_store import LiveScene, LiveStore
from tests.support.store.scene import spec
from tests.support.wait import wait_until
from toolonce.store.model.states import State
from toolonce.store.operations.recovery import Retention
from toolonce.worker import Registry
from toolonce.worker.maintenance.fence_watermark import ConfirmedWatermark
from toolonce.worker.maintenance.recovery import Maintenance, ServedBy


def test_a_worker_without_a_free_slot_leaves_held_calls_where_they_are(site: Site) -> None:
    """Busy or draining, it would set them going for a worker without the tool, which gives them back at once."""
    ours, others, looks, is_free = Registry(), Registry(), [], threading.Event()
    ours.tool(name="look", effect="read")(lambda: None)
    others.tool(name="seek", effect="read")(lambda: None)
    site.publish(ours)
    key = site.submit("look")
    with site.worker_here(others):
        site.wait_for(key, State.HELD)

    def has_room() -> bool:
        looks.append(is_free.is_set())
        return looks[-1]

    served = ServedBy("ours", ("default",), ours, keys=(), has_room=has_room)
    maintenance = Maintenance(site.connection, served, ConfirmedWatermark(), lease_ms=400, retention=Retention())
    maintenance.start()
    try:
        wait_until(lambda: len(looks) > 3, description="it has swept")
        assert site.state(key) is State.HELD
        is_free.set()
        site.wait_for(key, State.QUEUED)
    finally:
        maintenance.stop(time.monotonic() + 5)


def test_a_full_worker_has_no_room_and_one_that_ends_has_none_either(site: Site) -> None:
    registry = Registry()

    @registry.tool
    def occupy() -> None:
        from tests.support.processes.tools_under_test import effect, pass_gate

        effect("inside")
        pass_gate("go")

    with site.worker_here(registry, concurrency=1) as process:
        wait_until(lambda: process.has_room, description="its slot waits for work")
        site.submit("occupy")
        wait_until(lambda: site.ledger.count("inside"), description="the slot is taken")
        was_full = not process.has_room
        site.ledger.open_gate("go")
        wait_until(lambda: process.has_room, description="there is room again")

    assert was_full
    assert process.is_draining
    assert not process.has_room


def test_a_round_tells_when_the_next_call_is_due_whatever_step_comes_last(site: Site) -> None:
    """Else a delayed call, or one over its tool's rate, waits for the next round that comes anyway."""
    store = LiveStore(site.url, site.namespace)
    scene = LiveScene(store)
    served = ServedBy("ours", ("default",), Registry(), keys=(), has_room=lambda: True)
    maintenance = Maintenance(site.connection, served, ConfirmedWatermark(), lease_ms=8_000, retention=Retention())
    nothing_is_due = maintenance.once()
    scene.retry_later(scene.start("a"), delay_ms=60_000)
    of_a_delayed_call = maintenance.once()
    look = spec("look", "read", rate="1/h")
    scene.publish(look)
    scene.start("b", of=look)
    scene.submit("c", of=look)
    scene.claim(scene.pop() or "")
    scene.cancel(scene.submit("a"))
    of_a_start = maintenance.once()
    store.close()

    assert nothing_is_due is None
    assert of_a_delayed_call
    assert 50_000 < of_a_delayed_call <= 60_000
    assert of_a_start
    assert 3_000_000 < of_a_start <= 3_600_000
