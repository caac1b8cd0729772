"""Who is compared: how each fills its queue and starts its worker. Those that are not installed are passed over."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from toolonce.store.connections.connection import Connection
from toolonce.store.model import identity
from toolonce.store.model.specs import ToolSpec
from toolonce.store.operations import admission
from toolonce.store.operations.tools import publish


@dataclass(frozen=True)
class Rival:
    """One system under the same load.

    Attributes:
        needs: the module that must be installed.
        worker: the command line of one worker process.
        share: how much of the load it gets; slow ones get less, since it is a rate that is measured.
        environment: variables that its worker gets besides.
        server: options of its server.
    """

    name: str
    needs: str
    worker: tuple[str, ...]
    fill: Callable[[str, int], None]
    share: float = 1.0
    processes: int = 1
    environment: Mapping[str, str] = field(default_factory=dict, hash=False)
    server: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def is_installed(self) -> bool:
        return find_spec(self.needs) is not None


def fill_ours(url: str, count: int, tool: str = "noop") -> None:
    """Admit calls in turns of 50."""
    from our_tools import tools

    connection = Connection(url)
    space = connection.space
    connection.run(publish(space, tools.specs()))
    found = tools.find(tool)
    assert found
    for first in range(0, count, 50):
        turn_id = f"{tool}-{first}"
        turn = admission.Turn("bench", turn_id, identity.turn_key(space.name, "bench", turn_id))
        calls = [new_call(space.name, turn_id, found.spec, n) for n in range(first, min(count, first + 50))]
        connection.run(admission.admit(space, turn, calls, request=admission.Request(turn_id)))
    connection.close()


def new_call(namespace: str, turn_id: str, spec: ToolSpec, n: int) -> admission.NewCall:
    key = identity.call_key(namespace, "bench", turn_id, identity.reference(str(n), 1))
    known = admission.Identified(key, (identity.fingerprint(spec.name, {"n": n}),))
    return admission.NewCall(known, spec.name, json.dumps({"n": n}), n, str(n), spec=spec)


def _fill_other(module: str) -> Callable[[str, int], None]:
    """In a process of its own: their libraries shall not meet in one."""

    def fill(url: str, count: int) -> None:
        command = [sys.executable, "-c", f"import {module}; {module}.enqueue({count})"]
        subprocess.run(command, check=True, cwd=Path(__file__).parent)

    return fill


def our_worker(slots: int = 32) -> tuple[str, ...]:
    return (
        sys.executable, "-m", "toolonce.ops", "work", "--tools", "our_tools:tools", "--concurrency", str(slots),
        "--log-level", "error",
    )  # fmt: skip


_PY = sys.executable
OURS = Rival("toolonce, 32 slots", "toolonce.worker", our_worker(), fill_ours)
TWO_OF_OURS = Rival("toolonce, two processes", "toolonce.worker", our_worker(), fill_ours, processes=2)
RQ = Rival("RQ SimpleWorker", "rq", (_PY, "peer_rq.py"), _fill_other("peer_rq"), share=0.15)
OTHERS = (
    Rival(
        "dramatiq, 8 threads", "dramatiq", (_PY, "-m", "dramatiq", "peer_dramatiq", "-p", "1", "--skip-logging"),
        _fill_other("peer_dramatiq"), share=0.7,
    ),
    Rival(
        "taskiq, 100 tasks", "taskiq_redis",
        (_PY, "-m", "taskiq", "worker", "peer_taskiq:broker", "--workers", "1", "--log-level", "ERROR"),
        _fill_other("peer_taskiq"), share=0.7,
    ),
    Rival(
        "SAQ, 50 jobs", "saq", (_PY, "-m", "saq", "peer_saq.settings", "--quiet", "--workers", "1"),
        _fill_other("peer_saq"), share=0.7,
    ),
)  # fmt: skip
