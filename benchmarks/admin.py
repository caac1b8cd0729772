"""Do the operator's commands stay quick on a large store? Redis time per command, and the longest single one.

Fills a server with settled and queued calls by cloning real records, then runs each command as a person would and
reads what the server itself measured (SLOWLOG with every command in it). Wanted: under 200 ms of Redis time for a
page, no single Redis command above 50 ms.

    .venv/bin/python benchmarks/admin.py [--settled 1000000] [--queued 200000]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import redis

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.support.servers.redis_server import RealServer
from tests.support.store.live_store import LiveScene, LiveStore
from tests.support.store.scene import spec
from toolonce.ops.cli import main as toolonce

NAMESPACE = "bench"
PAGE_MS, COMMAND_MS = 200.0, 50.0
STEP = 5_000
ROUNDS = 3
"""SLOWLOG counts the time that the machine gave to others, too; the best round is the nearest to the server's own."""
CLONE = """
local root, source, state, first, last, stamp = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local record = redis.call('HGETALL', root .. 'call:' .. source)
local history = redis.call('LRANGE', root .. 'history:' .. source, 0, -1)
for number = first, last do
  local call = redis.sha1hex(state .. number):sub(1, 32)
  redis.call('HSET', root .. 'call:' .. call, unpack(record))
  redis.call('HSET', root .. 'call:' .. call, 'ikey', call .. '-' .. call)
  redis.call('RPUSH', root .. 'history:' .. call, unpack(history))
  redis.call('ZADD', root .. 'in:' .. state, string.format('%.0f', tonumber(stamp) + number), call)
  if state == 'queued' then
    redis.call('RPUSH', root .. 'rq:queue:' .. root:sub(2, -3) .. '.default', call .. '-' .. call)
    redis.call('ZADD', root .. 'pushed:default', number, call)
  end
end
redis.call('HINCRBY', root .. 'counts', 'state:' .. state, last - first + 1)
redis.call('HINCRBY', root .. 'counts', 'tool:' .. state .. ':pay', last - first + 1)
redis.call('HINCRBY', root .. 'counts', 'admitted', last - first + 1)
if state ~= 'queued' then
  redis.call('HINCRBY', root .. 'counts', 'settled', last - first + 1)
end
"""


def commands(key: str) -> list[list[str]]:
    """What people type, a page each."""
    return [
        ["calls"],
        ["calls", "--oldest"],
        ["calls", "--state", "succeeded", "--limit", "200"],
        ["calls", "--state", "queued", "--tool", "nothing"],
        ["calls", "--since", "1h", "--error", "nothing"],
        ["call", key],
        ["call", key[:8]],
        ["stats"],
        ["workers"],
        ["doctor"],
        ["recover", "--dry-run"],
        ["recover"],
        ["replay", "--state", "succeeded", "--limit", "50"],
        ["retry", "--state", "failed", "--limit", "50", "--dry-run"],
        ["cancel", "--state", "queued", "--limit", "50", "--dry-run"],
        ["purge", "--state", "succeeded", "--limit", "50", "--yes"],
        ["tail", "--for", "0s"],
        ["metrics", "--once"],
    ]


def fill(client: redis.Redis, scene: LiveScene, settled: int, queued: int) -> str:
    """Clone a succeeded call and a queued one; returns the key of a settled one."""
    scene.publish(spec("pay", deadline_ms=100 * 365 * 86_400_000))
    done = scene.succeeded("done", {"paid": 5}, arguments={"cents": 5})
    waiting = scene.submit("waiting", {"cents": 5}, of=spec("pay", deadline_ms=100 * 365 * 86_400_000))
    clone = client.register_script(CLONE)
    stamp = round(time.time() * 1000) - 3_600_000
    for source, state, number in ((done, "succeeded", settled), (waiting, "queued", queued)):
        for first in range(0, number, STEP):
            last = min(first + STEP, number) - 1
            clone(keys=[f"{{{NAMESPACE}}}:"], args=[source, state, first, last, stamp])
    return done


def measured(client: redis.Redis, words: list[str], url: str) -> tuple[float, float]:
    """Redis time of one command line, ms: in all, and of its longest Redis command."""
    times = [_once(client, words, url) for _ in range(ROUNDS)]
    return min(total for total, _ in times), min(longest for _, longest in times)


def _once(client: redis.Redis, words: list[str], url: str) -> tuple[float, float]:
    client.slowlog_reset()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        toolonce([*words, "--redis", url, "--namespace", NAMESPACE, "--durability", "volatile"])
    blocking = (b"XREAD", b"BLMOVE")
    taken = [entry["duration"] / 1000 for entry in client.slowlog_get(10_000) if not _is(entry, blocking)]
    return sum(taken), max(taken, default=0.0)


def _is(entry: dict[str, bytes], names: tuple[bytes, ...]) -> bool:
    return entry["command"].split(b" ")[0].upper() in names


def rows(settled: int, queued: int) -> Iterator[tuple[str, float, float]]:
    """Each command line with its times."""
    with RealServer(appendonly="no", slowlog_log_slower_than="0", slowlog_max_len="100000") as server:
        store = LiveStore(server.url, NAMESPACE)
        client = redis.Redis.from_url(server.url, decode_responses=False)
        start = time.perf_counter()
        key = fill(client, LiveScene(store), settled, queued)
        memory = client.info("memory")["used_memory_human"]
        print(f"{settled} settled and {queued} queued calls in {time.perf_counter() - start:.0f} s, {memory}")
        for words in commands(key):
            yield " ".join(words), *measured(client, words, server.url)
        store.close()
        client.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--settled", type=int, default=1_000_000)
    parser.add_argument("--queued", type=int, default=200_000)
    args = parser.parse_args()
    fine = True
    print(f"{'command':60} {'Redis ms':>9} {'longest':>9}")
    for line, total, longest in rows(args.settled, args.queued):
        over = longest > COMMAND_MS or total > PAGE_MS
        fine = fine and not over
        print(f"{line:60} {total:9.1f} {longest:9.1f}{'  OVER' if over else ''}", flush=True)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
