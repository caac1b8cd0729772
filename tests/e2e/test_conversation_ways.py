"""`Conversation` and `AsyncConversation` alike: questions and kills in every dialect, content blocks, an earlier
history, trimming, approvals. The server judges every request as the provider would."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest

from tests.support.processes.processes import Child
from tests.support.processes.tools_under_test import effect
from tests.support.processes.workers import Site
from tests.support.stream.dialogue import KILL, OVER_ASYNCIO, STEPS, InLoop, talk
from tests.support.stream.provider_server import ProviderServer
from tests.support.stream.speech import stream
from toolonce.store.model.outcomes import Outcome
from toolonce.stream.agent.terms import AsyncHooks, Hooks
from toolonce.stream.dialects.request import user_message
from toolonce.stream.harness.history import history, replies
from toolonce.stream.turns.errors import StreamMisuse
from toolonce.stream.turns.turn import DIALECTS, Dialect, ToolCall, TurnResult
from toolonce.worker import Ask, Call, Registry

CALLS: list[tuple[str, str, dict[str, Any]]] = [("put", "c1", {"what": "one"}), ("echo", "c2", {"value": [1, "é"]})]
BLOCKS: dict[Dialect, list[dict[str, Any]]] = {
    "anthropic": [
        {"type": "text", "text": "Look:"},
        {"type": "image", "source": {"type": "url", "url": "https://x/i"}},
    ],
    "openai-chat": [{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": {"url": "https://x/i"}}],
    "openai-responses": [{"type": "input_text", "text": "Look:"}, {"type": "input_image", "image_url": "https://x/i"}],
    "google-generate": [{"text": "Look:"}, {"fileData": {"mimeType": "image/png", "fileUri": "https://x/i"}}],
    "google-interactions": [{"type": "text", "text": "Look:"}, {"type": "image", "uri": "https://x/i"}],
    "bedrock-converse": [{"text": "Look:"}, {"image": {"format": "png", "source": {"bytes": "https://x/i"}}}],
    "ollama": [{"content": "Look:"}, {"images": ["https://x/i"]}],
    "cohere": [{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": {"url": "https://x/i"}}],
}

Talk = Callable[..., Any]


@pytest.fixture
def provider() -> Iterator[ProviderServer]:
    with ProviderServer() as server:
        yield server


@pytest.fixture(params=["blocking", "asyncio"])
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def talking(site: Site, provider: ProviderServer, way: str) -> Iterator[Talk]:
    with httpx2.Client(timeout=30) as http:

        def begin(dialect: Dialect, **more: Any) -> Any:
            given = more.pop("hooks", {})
            if way == "blocking":
                return talk(site.client, http, provider.url, dialect, hooks=Hooks(**given), **more)
            return InLoop(site.url, site.namespace, provider.url, dialect, hooks=AsyncHooks(**given), **more)

        yield begin


def script(dialect: Dialect, *turns: Any) -> list[bytes]:
    return [
        stream(dialect, f"turn-{number}", turn)
        if isinstance(turn, list)
        else stream(dialect, f"turn-{number}", (), turn)
        for number, turn in enumerate(turns)
    ]


def sent(provider: ProviderServer, number: int = -1) -> list[Any]:
    body = provider.requests[number][1]
    found: list[Any] = next(body[name] for name in ("messages", "input", "contents") if name in body)
    return found


def earlier(dialect: Dialect, *, answered: bool = True) -> list[dict[str, Any]]:
    """A question, a turn with a call, its result."""
    call = ToolCall("echo", {"value": 7}, "old1")
    turn = TurnResult("anthropic" if dialect != "anthropic" else "openai-chat", "completed", (call,), text="Well.")
    outcome = Outcome("k", "k-f", "echo", "old1", 0, None, {"seven": 7})
    results = replies([outcome], dialect, turn_id="old", came_in=turn.dialect) if answered else []
    return [user_message("Before.", dialect), *history(turn, dialect, turn_id="old"), *results]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_question_is_answered_with_what_the_tools_did(
    site: Site, provider: ProviderServer, talking: Talk, dialect: Dialect
) -> None:
    provider.script.extend(script(dialect, CALLS, "All done."))
    turns: list[TurnResult] = []
    states: list[str] = []
    conversation = talking(
        dialect, hooks={"on_turn": turns.append, "on_outcome": lambda outcome: states.append(outcome.word)}
    )
    with site.worker():
        answer = conversation.say("Do it.", step="q1")

    assert (answer.text, answer.ended, answer.held) == ("All done.", "answered", ())
    assert provider.refusals == []
    assert site.ledger.lines() == ["put one"]
    assert json.dumps(conversation.messages).count("one") >= 2  # the call and its result
    assert (len(turns), states.count("succeeded")) == (2, 2)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_harness_over_asyncio_that_is_killed_at_each_step_in_turn_has_one_effect(
    site: Site, provider: ProviderServer, dialect: Dialect
) -> None:
    first, answer = script(dialect, CALLS, "All done.")
    renamed: list[tuple[str, str, dict[str, Any]]] = [("put", "n1", {"what": "one"})]
    provider.script.extend([first, stream(dialect, "turn-new", renamed), answer, answer])

    def harness(**env: str) -> Child:
        words = [site.url, site.namespace, provider.url, dialect, "Do it.", "q1"]
        return Child.python("-m", "tests.support.stream.dialogue", *words, env={OVER_ASYNCIO: "1", **env})

    with site.worker():
        for step in STEPS:
            with harness(**{KILL: step}) as dying:
                assert dying.wait(60) == -9, dying.output
        with harness() as last:
            said = json.loads(last.wait_for_line("^answer (.*)", 60).group(1))

    assert said == {"text": "All done.", "ended": "answered"}
    assert provider.refusals == []
    assert site.ledger.lines("put") == ["put one"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_content_blocks_are_sent_as_they_are_also_after_a_restart(
    provider: ProviderServer, talking: Talk, dialect: Dialect
) -> None:
    provider.script.extend(script(dialect, "A cat.", "Still a cat."))
    talking(dialect).say(BLOCKS[dialect], step="q1")
    first = sent(provider)[0]
    talking(dialect).say("And now?", step="q2")

    assert "Look:" in json.dumps(first)
    assert "https://x/i" in json.dumps(first)
    assert sent(provider)[0] == first
    if dialect != "ollama":
        assert next(value for value in first.values() if isinstance(value, list)) == BLOCKS[dialect]
    assert provider.refusals == []


@pytest.mark.parametrize(
    ("content", "error"),
    [([], ValueError), (7, TypeError), ([b"raw"], TypeError), ([{"image": b"raw"}], TypeError), (None, TypeError)],
)
def test_content_that_cannot_be_kept_is_refused_before_anything_is_asked(
    provider: ProviderServer, talking: Talk, content: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        talking("anthropic").say(content, step="q1")
    assert provider.requests == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_earlier_history_comes_first_and_counts_once(
    site: Site, provider: ProviderServer, talking: Talk, dialect: Dialect
) -> None:
    provider.script.extend(script(dialect, CALLS, "Done.", "Again."))
    begun = earlier(dialect)
    with site.worker():
        talking(dialect, history=begun).say("Do it.", step="q1")
        for given in (begun, ()):  # a restart may pass it again, or not
            talking(dialect, history=given).say("And?", step="q2")

    assert provider.refusals == []
    assert len(provider.requests) == 3
    assert sent(provider, 0)[: len(begun) - 1] == begun[:-1]  # its last message may be joined with the question
    assert [json.dumps(sent(provider, number)).count("Before.") for number in range(3)] == [1, 1, 1]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_earlier_history_with_a_call_that_has_no_result_is_refused(talking: Talk, dialect: Dialect) -> None:
    """Over asyncio the object is made with its first question."""
    with pytest.raises(StreamMisuse, match=r"history: the call '.*' has no result"):
        talking(dialect, history=earlier(dialect, answered=False)).say("Do it.", step="q1")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_trimmed_history_has_whole_turns_and_what_is_stored_stays_whole(
    site: Site, provider: ProviderServer, talking: Talk, dialect: Dialect
) -> None:
    rounds: list[list[tuple[str, str, dict[str, Any]]]] = [[("echo", f"c{n}", {"value": n})] for n in range(4)]
    provider.script.extend(script(dialect, *rounds, "Done."))
    seen: list[int] = []

    def trim(groups: list[list[Any]]) -> list[list[Any]]:
        seen.append(len(groups))
        return [groups[0], *groups[1:][-2:]]

    conversation = talking(dialect, history=earlier(dialect), hooks={"trim": trim})
    with site.worker():
        assert conversation.say("Do it.", step="q1").text == "Done."

    assert provider.refusals == []
    assert seen == [3, 4, 5, 6, 7]  # the question before, its turn with the result, the question, a turn at a time
    last = json.dumps(sent(provider))
    assert ("c3" in last or '"value": 3' in last, '"value": 1' in last) == (True, False)
    assert '"value": 1' in json.dumps(conversation.messages).replace('\\"', '"').replace('"value":1', '"value": 1')


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("cut", ["the call", "the result", "everything"])
def test_a_trimming_that_would_cut_a_call_from_its_result_is_an_error_and_nothing_is_asked(
    provider: ProviderServer, talking: Talk, dialect: Dialect, cut: str
) -> None:
    def trim(groups: list[list[Any]]) -> list[list[Any]]:
        question, turn, asked = groups
        if cut == "everything":
            return []
        return [question, turn[-1:], asked] if cut == "the call" else [question, turn[:-1], asked]

    begun = earlier(dialect)
    with pytest.raises(StreamMisuse, match=r"^trim"):
        talking(dialect, history=begun, hooks={"trim": trim}).say("Do it.", step="q1")
    assert provider.requests == []
    whole = talking(dialect)
    provider.script.extend(script(dialect, "Fine."))
    assert whole.resume().text == "Fine."
    assert provider.refusals == []


def test_a_trimming_may_write_a_summary_and_cannot_change_what_is_stored(
    provider: ProviderServer, talking: Talk
) -> None:
    def trim(groups: list[list[Any]]) -> list[list[Any]]:
        groups[0][0]["content"] = "changed"
        return [[user_message("In short: seven.", "anthropic")], groups[-1]]

    provider.script.extend(script("anthropic", "Fine."))
    conversation = talking("anthropic", history=earlier("anthropic"), hooks={"trim": trim})
    conversation.say("Do it.", step="q1")
    assert "In short" in json.dumps(sent(provider))
    assert "changed" not in json.dumps(conversation.messages)


@pytest.fixture(params=["always", "hook"])
def asking(request: pytest.FixtureRequest) -> Registry:
    """A tool that is approved by a person: as it declares, or as its worker's hook finds out."""
    tools = Registry()

    @tools.tool(effect="mutating", approval=request.param)
    def wire(what: str) -> str:
        effect(f"wire {what}")
        return what

    if request.param == "hook":

        @tools.authorize
        def ask(call: Call, arguments: dict[str, Any]) -> Ask:
            return Ask()

    return tools


@pytest.mark.parametrize("decision", ["approve", "deny"])
def test_a_call_that_needs_approval_is_shown_and_goes_on_with_the_answer(
    site: Site, provider: ProviderServer, talking: Talk, asking: Registry, decision: str
) -> None:
    provider.script.extend(script("anthropic", [("wire", "c1", {"what": "one"})], "Well."))
    conversation = talking("anthropic")
    with site.worker_here(asking):
        answer = conversation.say("Do it.", step="q1")
        assert (answer.ended, [held.tool for held in answer.held]) == ("held", ["wire"])
        assert "approval" in answer.text
        assert conversation.resume().ended == "held"
        getattr(conversation, decision)(answer.held[0], actor="maria")
        assert talking("anthropic").resume().text == "Well."

    assert site.ledger.lines() == (["wire one"] if decision == "approve" else [])
    assert ("denied" in json.dumps(sent(provider))) == (decision == "deny")


def test_a_hook_may_approve_while_the_conversation_goes_on(
    site: Site, provider: ProviderServer, talking: Talk, asking: Registry
) -> None:
    provider.script.extend(script("anthropic", [("wire", f"c{n}", {"what": n}) for n in "12"], "Well."))

    def on_outcome(outcome: Outcome) -> None:
        if outcome.waits_for_a_person:
            site.client.approve(outcome, actor="policy")

    with site.worker_here(asking):
        answer = talking("anthropic", hooks={"on_outcome": on_outcome}).say("Do it.", step="q1")
    assert (answer.text, answer.ended) == ("Well.", "answered")
    assert sorted(site.ledger.lines()) == ["wire 1", "wire 2"]
