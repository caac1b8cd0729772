"""The benchmark of costs, in small: each piece measures something, and a run says whether it counts."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
KEYS = {
    "server_us_per_call", "peers_server_us_per_call", "instructions_per_call", "worker_us_per_call",
    "aof_bytes_per_call", "bytes_per_settled_call", "bytes_per_queued_call",
}  # fmt: skip
NEEDS_VALGRIND = pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
NEEDS_PROC = pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="needs the scheduler's counts")


def cost(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "benchmarks" / "cost.py"), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment or None)


def last_line(ran: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert ran.stdout, ran.stderr
    answer: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return answer


@NEEDS_PROC
def test_a_short_run_measures_each_cost_against_a_checkout_and_says_that_it_does_not_count() -> None:
    ran = cost("--calls", "60", "--rounds", "1", "--no-peers", "--before", str(ROOT), "--json", PATH="")

    answer = last_line(ran)
    assert answer.keys() >= KEYS
    assert answer["server_us_per_call"] > 0
    assert answer["worker_us_per_call"] > 0
    assert 1_000 < answer["aof_bytes_per_call"] < 20_000
    # So few calls share what the worker itself keeps in the store.
    assert 500 < answer["bytes_per_queued_call"] < answer["bytes_per_settled_call"] < 50_000
    assert answer["before"].keys() <= answer.keys()
    assert "apt-get install valgrind" in ran.stdout
    assert answer["instructions_per_call"] is None
    assert (answer["counts"], ran.returncode) == (False, 3)
    assert "this run does not count: 1 rounds, and 5 are the least" in ran.stdout


@NEEDS_VALGRIND
def test_a_call_that_takes_more_instructions_than_the_bar_fails_the_run() -> None:
    above = cost("--only-instructions", "--max-instructions", "1000", "--json")
    within = cost("--only-instructions", "--max-instructions", "100000000", "--json")

    assert (above.returncode, within.returncode) == (1, 0)
    first, second = last_line(above), last_line(within)
    assert first["instructions_per_call"] == pytest.approx(second["instructions_per_call"], rel=0.01)
    assert first["instructions_per_step"].keys() == {"admit", "take", "claim", "settle"}


@pytest.mark.parametrize("option", ["--instructions", "--only-instructions"])
def test_where_instructions_cannot_be_counted_the_package_is_named(option: str) -> None:
    ran = cost(option, PATH="")

    assert ran.returncode == 1
    assert "apt-get install valgrind" in ran.stderr


def test_a_folder_that_is_no_checkout_is_refused(tmp_path: Path) -> None:
    ran = cost("--before", str(tmp_path))

    assert f"{tmp_path} is no checkout of toolonce" in ran.stderr
