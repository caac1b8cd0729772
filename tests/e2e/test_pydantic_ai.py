"""The toolset in a real Pydantic AI agent: its tools run here, once, also when the agent is killed and restarted."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="the extra pydantic-ai is not installed")

from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.toolsets import WrapperToolset

from tests.support.processes.agent import model
from tests.support.processes.processes import Child
from tests.support.processes.workers import Site
from tests.support.wait import wait_until
from toolonce.stream.adapters.pydantic_ai import ToolonceToolset
from toolonce.stream.harness.async_client import AsyncClient
from toolonce.worker import Registry


def say(site: Site, calls: list[tuple[str, Any]], *, wait_s: float | None = None, **response: Any) -> str:
    async def main() -> str:
        async with AsyncClient(site.url, scope="tenant-1/talk-1", namespace=site.namespace) as client:
            toolset: ToolonceToolset[object] = ToolonceToolset(client, wait_s=wait_s)
            done = await Agent(model(calls, **response), toolsets=[toolset]).run("Do it.")
            return done.output

    return asyncio.run(main())


def test_an_agents_calls_are_run_by_a_worker_and_answered_in_order(site: Site) -> None:
    with site.worker():
        said = say(site, [("put", {"what": "one"}), ("echo", {"value": [1, "é"]}), ("fail", {"message": "no money"})])

    one, two, three = said.split(" | ")
    assert (one, two) == ("one", "[1, 'é']")
    assert "no money" in three
    assert "Do not say that it succeeded" in three
    assert site.ledger.lines() == ["put one"]


def test_an_agent_that_is_killed_while_its_tools_run_goes_on_and_has_one_effect_each(
    site: Site, tmp_path: Path
) -> None:
    words = ["-m", "tests.support.processes.agent", site.url, site.namespace, str(tmp_path / "messages.json")]
    with site.worker():
        with Child.python(*words) as agent:
            wait_until(lambda: site.ledger.count("put") == 2, 30, "both tools have had their effect")
            agent.kill9()
        with Child.python(*words) as again:
            site.ledger.open_gate("slow")
            again.wait_for_line(r"said slow \| quick", 60)

    assert sorted(site.ledger.lines()) == ["put quick", "put slow"]


def test_the_same_response_twice_is_one_turn_and_another_one_is_another(site: Site) -> None:
    calls = [("put", {"what": "x"})]
    with site.worker():
        for response_id in ("resp_1", "resp_1", "resp_2"):
            say(site, calls, provider_response_id=response_id)

    assert site.ledger.lines() == ["put x", "put x"]


def test_responses_without_a_usable_id_are_told_apart_all_the_same(site: Site) -> None:
    with site.worker():
        for _ in range(2):
            say(site, [("put", {"what": "x"})], provider_response_id="chatcmpl-7")

    assert site.ledger.lines() == ["put x", "put x"]


def test_a_response_that_was_cut_runs_nothing_and_the_model_is_told(site: Site) -> None:
    said = say(site, [("put", {"what": "x"})], finish_reason="length")

    assert "nothing was executed" in said
    assert site.stats().counts.get("admitted", 0) == 0


def test_wrong_arguments_go_back_to_the_model_to_be_corrected(site: Site) -> None:
    said = say(site, [("put", {"wat": 1})])

    assert "Correct the arguments" in said


def test_a_call_that_outlasts_the_wait_is_said_to_be_running(site: Site) -> None:
    said = say(site, [("put", {"what": "x"})], wait_s=0.05)

    assert "do not say that it succeeded" in said


def test_a_tool_that_nobody_published_is_not_offered(site: Site) -> None:
    said = say(site, [("nope", {})])

    assert "nope" in said
    assert site.stats().counts.get("admitted", 0) == 0


def test_the_calls_of_a_response_are_submitted_as_one_batch_in_call_order(site: Site) -> None:
    """Faults 9: `charge` must not run before `reserve`, whatever the framework starts first."""
    registry = Registry()

    def write(line: str) -> None:
        with site.ledger.path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    @registry.tool
    def reserve() -> str:
        write("reserve")
        return "reserved"

    @registry.tool(after="reserve")
    def charge() -> str:
        write("charge")
        return "charged"

    calls: list[tuple[str, dict[str, Any]]] = [("reserve", {}), ("charge", {}), ("reserve", {}), ("charge", {})]
    with site.worker_here(registry):
        said = say(site, calls)

    outcomes = site.client.batch("resp_1").outcomes
    admitted = {site.record(outcome.key).fields.admitted_by for outcome in outcomes}
    assert said == "reserved | charged | reserved | charged"
    assert len(admitted) == 1, "one submission"
    assert [outcome.call_id for outcome in outcomes] == ["call_0", "call_1", "call_2", "call_3"]
    assert [line[:7] for line in site.ledger.lines()].count("reserve") == 2
    assert site.ledger.lines()[0] == "reserve"


def test_a_call_that_the_agent_keeps_back_is_not_submitted_with_its_siblings(site: Site) -> None:
    """Faults 9: only what the agent starts is asked for."""

    class Careful(WrapperToolset[object]):
        async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
            if tool_args.get("what") == "two":
                raise ModelRetry("not this one")
            return await super().call_tool(name, tool_args, ctx, tool)

    async def main() -> None:
        async with AsyncClient(site.url, scope="tenant-1/talk-1", namespace=site.namespace) as client:
            toolset = Careful(ToolonceToolset(client))
            await Agent(model([("put", {"what": "one"}), ("put", {"what": "two"})]), toolsets=[toolset]).run("Do it.")

    with site.worker():
        asyncio.run(main())
    assert site.ledger.lines() == ["put one"]


UNUSABLE = {
    '{"what": NaN}': "non_finite",
    '{"what": 1e400}': "non_finite",
    '{"what": "a", "what": "b"}': "duplicate_key",
    '{"what": ' + "9" * 5_000 + "}": "too_large",
    '{"what": ' + "[" * 100_000 + "]" * 100_000 + "}": "too_deep",
    '{"what": "\\ud800"}': "lone_surrogate",
    '{"what": "a"': "invalid_json",
    '["a"]': "not_an_object",
}


@pytest.mark.parametrize("text", UNUSABLE, ids=UNUSABLE.values())
def test_arguments_that_cannot_be_used_are_one_stored_refusal_and_the_sibling_runs(site: Site, text: str) -> None:
    """Faults 18: pydantic's own reader took some of them, and refused others without a trace."""
    calls: list[tuple[str, Any]] = [("put", text), ("put", {"what": "good"})]
    with site.worker():
        said = say(site, calls)

    assert site.ledger.lines() == ["put good"]
    stats = site.stats()
    assert (stats.counts["admitted"], stats.counts["state:refused"]) == (2, 1)
    assert "good" in said
