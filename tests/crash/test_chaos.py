"""Twenty seconds of chaos in every run of the tests; `make chaos` goes on for longer."""

from __future__ import annotations

import re

import pytest

from tests.support.processes.processes import Child

LAST_LINE = re.compile(r"calls (\d+), kills (\d+), duplicates 0, lost 0, unknown (\d+)")


@pytest.mark.timeout(300)
def test_random_kills_double_nothing_and_lose_nothing() -> None:
    with Child.python("-m", "tests.crash.chaos", "--seconds", "20") as chaos:
        code = chaos.wait(timeout=280)

        last = LAST_LINE.fullmatch(chaos.lines[-1])
        assert last, chaos.output
        calls, kills, _unknown = map(int, last.groups())
        assert calls > 0
        assert kills > 0
        assert code == 0, chaos.output
