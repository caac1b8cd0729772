"""Three in the morning: someone who knows only `toolonce --help` settles a call in doubt.

Every command typed here is one that an earlier answer named; nothing is known beforehand.
"""

from __future__ import annotations

import re
import shlex

from tests.support.processes.processes import Child
from tests.support.servers.redis_server import RealServer
from tests.support.store.live_store import LiveScene
from tests.support.store.scene import spec
from tests.support.store.sick import worker


class Terminal:
    """The real command line, as processes, in a shell whose environment names the store."""

    def __init__(self, url: str, namespace: str) -> None:
        self._environment = {"TOOLONCE_REDIS_URL": url, "TOOLONCE_NAMESPACE": namespace, "TOOLONCE_ACTOR": "newcomer"}
        self.seen = "toolonce --help"

    def type(self, line: str) -> str:
        assert line.split(" --")[0] in self.seen, f"nothing on the screen told to type {line!r}:\n{self.seen}"
        words = shlex.split(line)
        with Child.python("-m", "toolonce.ops", *words[1:], env=self._environment) as child:
            child.wait(60)
        self.seen += f"\n{child.output}"
        return child.output


def test_a_newcomer_settles_a_call_in_doubt_by_what_the_screen_says(
    scene: LiveScene, redis_server: RealServer, namespace: str
) -> None:
    scene.publish(spec("pay"))
    worker(scene, f"w-{namespace}")
    run = scene.unknown("a", arguments={"cents": 500})
    terminal = Terminal(redis_server.url, namespace)

    assert "toolonce doctor" in terminal.type("toolonce --help")
    diagnosis = terminal.type("toolonce doctor")
    listed = terminal.type(re.search(r"fix:  (toolonce calls --state unknown)", diagnosis).group(1))  # type: ignore[union-attr]
    shown = terminal.type(re.search(r"(toolonce call \w+)", listed).group(1))  # type: ignore[union-attr]
    assert '"cents": 500' in shown
    assert scene.record(run.call).idempotency_key in shown
    offered = re.search(r"(toolonce resolve \w+ --succeeded) JSON (--reason) R", shown)
    assert offered
    answer = terminal.type(f"{offered[1]} '{{\"paid\": 500}}' {offered[2]} 'it is on the statement'")
    after = terminal.type("toolonce doctor")

    assert f"call {run.call} is succeeded" in answer
    assert "[unknown]" not in after
    record = scene.record(run.call)
    assert (record.fields.result, record.history[-1]["actor"]) == ('{"paid": 500}', "newcomer")
