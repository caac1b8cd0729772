"""The Node example, with the npm package it names, against a consumer and a worker: it needs Redis and nothing else."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes.processes import ROOT, Child
from tests.support.processes.workers import Site
from tests.support.wait import wait_until
from toolonce.store.model.keyring import Keyring

EXAMPLE = ROOT / "ops" / "examples" / "node"
MESSAGE = {"type": "message", "role": "assistant", "model": "m", "usage": {"input_tokens": 1, "output_tokens": 1}}
KEY = "a key of at least sixteen characters"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example with its package installed, outside the repository."""
    npm = shutil.which("npm")
    if not npm or not shutil.which("node"):
        pytest.skip("node and npm are not installed")
    target = tmp_path_factory.mktemp("node") / "harness"
    shutil.copytree(EXAMPLE, target)
    done = subprocess.run(
        [npm, "install", "--no-audit", "--no-fund"], cwd=target, capture_output=True, text=True, timeout=110
    )
    if done.returncode:
        pytest.skip(f"npm cannot install the package `redis` here: {done.stderr.strip().splitlines()[-1:]}")
    return target


@contextmanager
def consumer(site: Site, **env: str) -> Iterator[Child]:
    command = ["-m", "toolonce.ops", "consume", "--redis", site.url, "--namespace", site.namespace]
    with Child.python(*command, env=env) as child:
        child.wait_for_line("reads the inboxes")
        yield child


@contextmanager
def harness(
    site: Site, folder: Path, turn: str, calls: list[dict[str, Any]], *, stop_reason: str = "tool_use", **env: str
) -> Iterator[Child]:
    words = ["--tenant", "acme", "--scope", "talk-1", "--turn", turn, "--namespace", site.namespace, "--wait", "30"]
    source = folder / f"{turn}.json"
    content = [{"type": "text", "text": "I see."}, *calls]
    source.write_text(json.dumps(MESSAGE | {"id": f"msg_{turn}", "content": content, "stop_reason": stop_reason}))
    script = f'exec node {folder / "harness.mjs"} "$@" < {source}'
    with Child("sh", "-c", script, "sh", *words, env={"TOOLONCE_REDIS_URL": site.url, **env}) as child:
        yield child


def tool_use(name: str, call_id: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def results(child: Child) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = json.loads(child.wait_for_line(r'^\{"role".*', 60).group(0))["content"]
    return content


CALLS = [
    tool_use("put", "toolu_1", what="n"),
    tool_use("nope", "toolu_2"),
    tool_use("echo", "toolu_3", value=[2**53 + 1, "é"]),
]


def test_a_node_harness_gets_one_result_per_call_and_its_own_again_when_it_repeats(site: Site, folder: Path) -> None:
    with site.worker(), consumer(site):
        with harness(site, folder, "step-1", CALLS) as child:
            first = results(child)
        with harness(site, folder, "step-1", CALLS) as child:
            again = results(child)

    assert [(result["tool_use_id"], result["is_error"]) for result in first] == [
        ("toolu_1", False), ("toolu_2", True), ("toolu_3", False)
    ]  # fmt: skip
    assert json.loads(first[0]["content"]) == "n"
    assert "unknown_tool" in first[1]["content"]
    assert json.loads(first[2]["content"]) == [2**53 + 1, "é"]
    assert again == first
    assert site.ledger.lines("put") == ["put n"]


def test_a_node_harness_that_hands_over_a_cut_turn_is_told_and_nothing_runs(site: Site, folder: Path) -> None:
    with site.worker(), consumer(site), harness(site, folder, "step-1", CALLS, stop_reason="max_tokens") as child:
        child.wait_for_line("truncated", 60)

    assert site.ledger.lines() == []


def test_a_node_harness_that_is_killed_while_it_waits_repeats_its_step_and_one_effect_stays(
    site: Site, folder: Path
) -> None:
    calls = [tool_use("put_and_wait", "toolu_1", what="slow")]
    with site.worker(), consumer(site):
        with harness(site, folder, "step-1", calls) as child:
            child.wait_for_line("entry")
            wait_until(lambda: site.ledger.count("put slow"), 20, "the tool has begun")
            child.kill9()
        with harness(site, folder, "step-1", calls) as child:
            child.wait_for_line("entry")
            site.ledger.open_gate("slow")
            [result] = results(child)

    assert json.loads(result["content"]) == "slow"
    assert site.ledger.lines() == ["put slow"]


def test_what_node_seals_the_consumer_can_read(site: Site, folder: Path) -> None:
    keys = {"TOOLONCE_KEYS": KEY}
    entry_key = {"TOOLONCE_ENTRY_KEY": Keyring.parse(KEY).entry_key("acme")}
    calls = [tool_use("put", "toolu_1", what="sealed ü")]
    with site.worker(env=keys), consumer(site, **keys), harness(site, folder, "step-1", calls, **entry_key) as child:
        [result] = results(child)

    assert json.loads(result["content"]) == "sealed ü"
