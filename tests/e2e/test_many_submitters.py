"""One call, submitted by many harnesses at once: one effect, one answer for all."""

from __future__ import annotations

import re
import sys
from contextlib import ExitStack
from pathlib import Path

from tests.support.processes.processes import Child
from tests.support.processes.workers import Site
from tests.support.servers.redis_server import RealServer

PROCESSES = 4
SUBMITS = 50

HARNESS = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor
from toolonce.stream import Client, ToolCall

url, namespace, submits = sys.argv[1], sys.argv[2], int(sys.argv[3])
client = Client(url, scope="tenant-1/talk-1", namespace=namespace)
call = ToolCall("put", {"what": "once"}, "call_0", "function", 0)
together = threading.Barrier(submits)

def submit(_):
    together.wait()
    return client.submit_calls([call], turn_id="one-turn").wait(60)[0]

print("ready", flush=True)
sys.stdin.readline()
with ThreadPoolExecutor(submits) as pool:
    outcomes = list(pool.map(submit, range(submits)))
client.close()
print("answers", len(outcomes), {(o.key, o.value, str(o.state), o.conflict) for o in outcomes}, flush=True)
"""


def test_two_hundred_submissions_of_one_call_from_four_processes_have_one_effect(
    redis_server: RealServer, namespace: str, tmp_path: Path
) -> None:
    site = Site(redis_server.url, namespace, tmp_path)
    with ExitStack() as stack:
        stack.callback(site.close)
        stack.enter_context(site.worker())
        harnesses = [
            stack.enter_context(Child(sys.executable, "-c", HARNESS, site.url, namespace, str(SUBMITS)))
            for _ in range(PROCESSES)
        ]
        for harness in harnesses:
            harness.wait_for_line("ready")
        for harness in harnesses:
            harness.send_line("go")
        said = {harness.wait_for_line("answers.*", 60).group(0) for harness in harnesses}

    assert site.ledger.lines() == ["put once"]
    [answer] = said
    assert re.fullmatch(rf"answers {SUBMITS} \{{\('[0-9a-f]{{32}}', 'once', 'succeeded', False\)\}}", answer)
