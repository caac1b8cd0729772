"""A harness that runs the calls of a turn one by one is killed in the middle of a call, and started again."""

from __future__ import annotations

import sys
from functools import partial

import pytest

from tests.support.processes.processes import Child
from tests.support.processes.workers import Site
from tests.support.wait import wait_until

HARNESSES = {
    "blocking": """
import sys
from toolonce.stream import Client

with Client(sys.argv[1], scope="tenant-1/talk-1", namespace=sys.argv[2]) as client:
    for number, what in enumerate(("first", "second")):
        outcome = client.call("put_and_wait", {"what": what}, call_id=f"c{number}", turn_id="t1")
        print("outcome", what, outcome.state, outcome.value, flush=True)
""",
    "asyncio": """
import asyncio, sys
from toolonce.stream import AsyncClient

async def main():
    async with AsyncClient(sys.argv[1], scope="tenant-1/talk-1", namespace=sys.argv[2]) as client:
        for number, what in enumerate(("first", "second")):
            outcome = await client.call("put_and_wait", {"what": what}, call_id=f"c{number}", turn_id="t1")
            print("outcome", what, outcome.state, outcome.value, flush=True)

asyncio.run(main())
""",
}


@pytest.mark.parametrize("way", HARNESSES)
def test_a_harness_killed_in_the_middle_of_a_call_goes_on_after_its_restart_with_one_effect_a_call(
    site: Site, way: str
) -> None:
    def harness() -> Child:
        return Child(sys.executable, "-c", HARNESSES[way], site.url, site.namespace)

    with site.worker():
        for what in ("first", "second"):
            with harness() as dying:
                wait_until(partial(site.ledger.count, f"put {what}"), description=f"the effect of {what}")
                dying.kill9()
            site.ledger.open_gate(what)
        with harness() as last:
            said = [last.wait_for_line(f"outcome {what} .*", 60).group(0) for what in ("first", "second")]

    assert said == ["outcome first succeeded first", "outcome second succeeded second"]
    assert site.ledger.lines() == ["put first", "put second"]
