"""ARCHITECTURE.md's list of the files on the path of a call is what really runs."""

from __future__ import annotations

import re
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

from tests.support.processes.workers import Site
from toolonce.store.model.keyring import Keyring
from toolonce.worker import Call, Registry
from toolonce.worker.runtime.process import Options, Process
from toolonce.worker.runtime.signals import Signals

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ("store", "stream", "worker", "ops")


class Visits:
    """The project's files in which functions are called, from the taking of a pointer to the handler's first line."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self._is_on_the_way = False

    def see(self, frame: FrameType, event: str, _: Any) -> None:
        path = Path(frame.f_code.co_filename)
        in_slot = threading.current_thread().name.startswith("toolonce-slot")
        if event != "call" or not in_slot or not path.is_relative_to(ROOT):
            return
        name = path.relative_to(ROOT).as_posix()
        if frame.f_code.co_qualname == "QueueCursor.next":
            self.files.clear()
            self._is_on_the_way = True
        if self._is_on_the_way and name.startswith(PACKAGES):
            self.files.add(name)

    def arrived(self) -> None:
        sys.setprofile(None)
        self._is_on_the_way = False


def listed_and_left_out() -> tuple[set[str], tuple[str, ...]]:
    """The files of the list, and the files and folders that the paragraph above it names as left out."""
    _, _, section = (ROOT / "ARCHITECTURE.md").read_text().partition("### The path of a call, file by file\n")
    text, first, rest = section.partition("\n\n### ")[0].partition("\n1. ")
    return set(re.findall(r"\d+\. `([\w/.]+)`", first + rest)), tuple(re.findall(r"`([\w/.]+[/y])`", text))


def test_the_listed_files_are_those_that_run_between_the_queue_and_the_handler(site: Site) -> None:
    registry, visits = Registry(), Visits()

    @registry.tool(effect="mutating", timeout=20)
    def pay(cents: int, *, call: Call) -> int:
        visits.arrived()
        return cents

    site.publish(registry)
    site.submit("pay", cents=5)
    worker = Process(site.connection, registry, Options(concurrency=1, burst=True), keyring=Keyring())
    threading.setprofile(visits.see)
    try:
        worker.live(Signals())
    finally:
        threading.setprofile(None)

    listed, left_out = listed_and_left_out()
    assert {file for file in visits.files - listed if not file.startswith(left_out)} == set()
    assert listed - visits.files == {"store/lua/claim.lua"}
    assert [name for name in left_out if not any(file.startswith(name) for file in visits.files)] == []
