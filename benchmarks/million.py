"""What a store full of settled calls costs: the same steps with 1,000 and with 1,000,000 records of 1,000 tenants.

Run: .venv/bin/python benchmarks/million.py [--records 1000000]       needs about 2 KB of memory and disk per record

One call is run for real and its keys are copied on the server, with their places in the indexes; so the records are
what the store itself writes. Shown is the median time of each step, and its ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from tests.support.servers.redis_server import RealServer  # noqa: E402  it needs the path above
from toolonce.store.connections.connection import Connection  # noqa: E402
from toolonce.store.model import identity  # noqa: E402
from toolonce.store.model.specs import ToolSpec  # noqa: E402
from toolonce.store.model.states import State  # noqa: E402
from toolonce.store.operations import admission, queries, recovery, runs  # noqa: E402
from toolonce.store.operations.runs import Delivery, Ending, Run  # noqa: E402
from toolonce.store.operations.tools import publish  # noqa: E402

FEW = 1_000
STEPS = 200
SPEC = ToolSpec("noop")
COPY = """
local root, source, first, last = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local record = redis.call('DUMP', root .. 'call:' .. source)
local at = tonumber(redis.call('ZSCORE', root .. 'in:succeeded', source))
for n = first, last do
  local key = string.format('%032x', n)
  redis.call('RESTORE', root .. 'call:' .. key, 0, record, 'REPLACE')
  local tenant = 'tenant-' .. n % 1000
  redis.call('HSET', root .. 'call:' .. key, 'tenant', tenant, 'scope', tenant .. '/talk')
  redis.call('HINCRBY', root .. 'reply_ids:' .. tenant .. '/talk', '', 1)
  redis.call('ZADD', root .. 'in:succeeded', at - n, key)
end
for _, name in ipairs({ 'admitted', 'tool:succeeded:noop' }) do
  redis.call('HINCRBY', root .. 'counts', name, last - first + 1)
end
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    args = parser.parse_args()
    # A copy on the server takes longer than a script should; and the load itself is not what is measured.
    options = {
        "busy_reply_threshold": "60000",
        "appendfsync": "everysec",
        "auto_aof_rewrite_percentage": "0",
        "save": "",
    }
    with RealServer(**options) as small, RealServer(**options) as large:
        few, many = MillionBench(small), MillionBench(large)
        few.load(FEW)
        many.load(args.records)
        os.sync()  # what the load has left to be written would be measured too
        for _ in range(STEPS):  # in turn, so that a slow moment of the machine meets both
            few.step()
            many.step()
        print(f"{'median of ' + str(STEPS):16} {FEW:>10} {args.records:>12}  ratio")
        for name in few.times:
            first, second = statistics.median(few.times[name]), statistics.median(many.times[name])
            print(f"{name:16} {first * 1000:7.3f} ms {second * 1000:9.3f} ms {second / first:6.2f}")
    return 0


class MillionBench:
    """The steps on one server."""

    def __init__(self, server: RealServer) -> None:
        self.server = server
        self.connection = Connection(server.url)
        self.space = self.connection.space
        self.turns = 0
        self.times: dict[str, list[float]] = {"claim": [], "settle": [], "list page": []}
        self.connection.run(publish(self.space, [SPEC]))
        self.source = self.one_call()

    def load(self, count: int) -> None:
        """Have so many copies of the settled call; durable from here on."""
        with self.server.client() as redis:
            for start in range(1, count + 1, 5_000):
                redis.eval(COPY, 1, self.space.root, self.source, start, min(count, start + 4_999))
            redis.config_set("appendfsync", "always")

    def step(self) -> None:
        """One of each."""
        run = self.taken(self.times["claim"])
        self.timed(self.times["settle"], runs.settle(self.space, run, Ending(State.SUCCEEDED, "1")))
        self.timed(self.times["list page"], queries.page(self.space, State.SUCCEEDED))
        for step in recovery.steps(self.space, ["default"], "bench", grace_ms=5_000):
            self.timed(self.times.setdefault(f"recovery: {step.script.name}", []), step)

    def timed(self, times: list[float], invocation: Any) -> Any:
        started = time.perf_counter()
        answer = self.connection.run(invocation)
        times.append(time.perf_counter() - started)
        return answer

    def one_call(self) -> str:
        run = self.taken([])
        self.connection.run(runs.settle(self.space, run, Ending(State.SUCCEEDED, json.dumps("x" * 200))))
        return run.call

    def taken(self, times: list[float]) -> Run:
        """Admit a call and claim it."""
        self.turns += 1
        turn_id = f"turn-{self.turns}"
        turn = admission.Turn("bench", turn_id, identity.turn_key(self.space.name, "bench", turn_id))
        key = identity.call_key(self.space.name, "bench", turn_id, identity.reference("a", 1))
        known = admission.Identified(key, (identity.fingerprint(SPEC.name, {}),))
        call = admission.NewCall(known, SPEC.name, "{}", 0, "a", spec=SPEC)
        self.connection.run(admission.admit(self.space, turn, [call], request=admission.Request(turn_id)))
        lists = (self.space.queue_key("default"), self.space.intermediate_key("default"))
        job = self.connection.command("LMOVE", *lists, "LEFT", "RIGHT").decode()
        delivery = Delivery(job, "default", turn_id, "bench")
        run = self.timed(times, runs.claim(self.space, delivery, lease_ms=30_000))
        assert isinstance(run, Run)
        return run


if __name__ == "__main__":
    sys.exit(main())
