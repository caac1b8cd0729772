"""Question, tool call, effect, result, final answer, in every dialect; the harness is killed and started again at each
step. The server judges every request as the provider would: one result per call, in the provider's shape."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.support.processes.processes import Child
from tests.support.processes.workers import Site
from tests.support.stream.dialogue import KILL, STEPS, talk
from tests.support.stream.provider_server import ProviderServer, Reply
from tests.support.stream.speech import stream
from toolonce.store.model.errors import KeyringMissing
from toolonce.store.model.keyring import Keyring
from toolonce.store.model.specs import ToolSpec
from toolonce.store.operations.tools import publish
from toolonce.stream.agent.conversation import Conversation
from toolonce.stream.agent.terms import Answer, Terms
from toolonce.stream.harness.client import Client
from toolonce.stream.provider.retry import Budget
from toolonce.stream.turns.turn import DIALECTS, Dialect

CALLS: list[tuple[str, str, dict[str, Any]]] = [("put", "c1", {"what": "one"}), ("echo", "c2", {"value": [1, "é"]})]


@pytest.fixture
def provider() -> Iterator[ProviderServer]:
    with ProviderServer() as server:
        yield server


@pytest.fixture
def http() -> Iterator[httpx2.Client]:
    with httpx2.Client(timeout=30) as client:
        yield client


def script(dialect: Dialect, *turns: Any) -> list[bytes]:
    """Turns one after the other: a list of calls, or a text."""
    return [
        stream(dialect, f"turn-{number}", turn)
        if isinstance(turn, list)
        else stream(dialect, f"turn-{number}", (), turn)
        for number, turn in enumerate(turns)
    ]


def last_history(provider: ProviderServer) -> list[Any]:
    body = provider.requests[-1][1]
    history: list[Any] = next(body[name] for name in ("messages", "input", "contents") if name in body)
    return history


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_question_is_answered_with_what_the_tools_did(
    site: Site, provider: ProviderServer, http: httpx2.Client, dialect: Dialect
) -> None:
    provider.script.extend(script(dialect, CALLS, "All done."))
    conversation = talk(site.client, http, provider.url, dialect)
    with site.worker():
        answer = conversation.say("Do it.", step="q1")

    assert (answer.text, answer.ended) == ("All done.", "answered")
    assert provider.refusals == []
    assert site.ledger.lines() == ["put one"]
    assert json.dumps(last_history(provider)).count("one") >= 2  # the call and its result


@pytest.mark.parametrize("dialect", DIALECTS)
def test_call_ids_that_a_server_counts_per_turn_stand_once_in_the_history_also_after_a_restart(
    site: Site, provider: ProviderServer, http: httpx2.Client, dialect: Dialect
) -> None:
    counted: list[list[tuple[str, str, dict[str, Any]]]] = [[("echo", "call_0", {"value": n})] for n in range(3)]
    provider.script.extend(script(dialect, counted[0], counted[1], "Twice.", counted[2], "Three times."))
    with site.worker():
        talk(site.client, http, provider.url, dialect).say("Do it.", step="q1")
        first = last_history(provider)
        another = talk(site.client, http, provider.url, dialect)
        another.say("Again.", step="q2")

    assert provider.refusals == []
    assert last_history(provider)[: len(first)] == first
    assert json.dumps(last_history(provider)).count('"call_0"') == (6 if dialect == "google-generate" else 2)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_harness_that_is_killed_at_each_step_in_turn_goes_on_and_has_one_effect(
    site: Site, provider: ProviderServer, dialect: Dialect
) -> None:
    first, answer = script(dialect, CALLS, "All done.")
    # A turn that died with the harness is asked for again: the model says it again, under new ids.
    renamed: list[tuple[str, str, dict[str, Any]]] = [
        ("put", "n1", {"what": "one"}),
        ("echo", "n2", {"value": [1, "é"]}),
    ]
    again = stream(dialect, "turn-new", renamed)
    provider.script.extend([first, again, answer, answer])
    with site.worker():
        for step in STEPS:
            with harness(site, provider, dialect, **{KILL: step}) as dying:
                assert dying.wait(60) == -9, dying.output
        with harness(site, provider, dialect) as last:
            said = json.loads(last.wait_for_line("^answer (.*)", 60).group(1))

    assert said == {"text": "All done.", "ended": "answered"}
    assert provider.refusals == []
    assert site.ledger.lines("put") == ["put one"]


def harness(site: Site, provider: ProviderServer, dialect: Dialect, **env: str) -> Child:
    words = [site.url, site.namespace, provider.url, dialect, "Do it.", "q1"]
    return Child.python("-m", "tests.support.stream.dialogue", *words, env=env)


def test_the_same_step_again_asks_nothing_and_says_the_same(
    site: Site, provider: ProviderServer, http: httpx2.Client
) -> None:
    provider.script.extend(script("anthropic", "Hello."))
    first = talk(site.client, http, provider.url, "anthropic").say("Hi.", step="q1")
    again = talk(site.client, http, provider.url, "anthropic").say("Hi.", step="q1")

    assert first.text == again.text == "Hello."
    assert len(provider.requests) == 1


def test_an_earlier_step_again_says_what_it_said_then(
    site: Site, provider: ProviderServer, http: httpx2.Client
) -> None:
    provider.script.extend(script("anthropic", "One.", "Two."))
    conversation = talk(site.client, http, provider.url, "anthropic")
    assert [conversation.say(step, step=step).text for step in ("q1", "q2", "q1", "q2")] == ["One.", "Two."] * 2
    assert len(provider.requests) == 2


def test_a_conversation_that_is_begun_anew_never_finds_the_calls_of_an_older_one(
    site: Site, provider: ProviderServer, http: httpx2.Client
) -> None:
    provider.script.extend(script("anthropic", CALLS, "Done.") * 2)
    with site.worker():
        talk(site.client, http, provider.url, "anthropic").say("Do it.", step="q1")
        site.connection.command(
            "DEL", f"{{{site.namespace}}}:journal:{site.client.terms.scope}"
        )  # as its lifetime does
        answer = talk(site.client, http, provider.url, "anthropic").say("Do it.", step="q1")

    assert answer.text == "Done."
    assert site.ledger.lines("put") == ["put one", "put one"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_after_a_bad_end_the_history_is_what_it_was_before_the_request(
    site: Site, provider: ProviderServer, http: httpx2.Client, dialect: Dialect
) -> None:
    whole = stream(dialect, "turn-1", CALLS)
    bad = [Reply(b"{}", 400), Reply(whole[: len(whole) // 2]), Reply(whole[: len(whole) // 2], promised=9)]
    conversation = talk(site.client, http, provider.url, dialect, terms=Terms("nl", budget=Budget(attempts=1)))
    provider.script.append(bad[0])
    first = conversation.say("Do it.", step="q1")
    before = json.dumps(conversation.messages)
    for reply in bad[1:]:
        provider.script.append(reply)
        again = conversation.resume()
        assert again.ended == "no_turn"
        assert "niets" in again.text or "Geen" in again.text

    assert first.ended == "no_turn"
    assert json.dumps(conversation.messages) == before
    assert all(asked == provider.requests[0] for asked in provider.requests)
    assert site.stats().counts.get("admitted", 0) == 0


def test_calls_that_outlast_the_wait_are_still_running_and_resumed_without_a_second_result(
    site: Site, provider: ProviderServer, http: httpx2.Client
) -> None:
    calls = [("put_and_wait", "c1", {"what": "slow"})]
    provider.script.extend(script("anthropic", calls, "Finally."))
    impatient = talk(site.client, http, provider.url, "anthropic", terms=Terms(wait_s=0.1))
    with site.worker():
        answer = impatient.say("Do it.", step="q1")
        assert (answer.ended, len(impatient.messages)) == ("running", 2)
        assert "goes on by itself" in answer.text
        assert impatient.say("And?", step="q2").ended == "running"
        site.ledger.open_gate("slow")
        later = talk(site.client, http, provider.url, "anthropic").resume()

    assert (later.text, later.ended) == ("Finally.", "answered")
    assert site.ledger.lines() == ["put slow"]
    assert provider.refusals == []


def test_the_model_may_correct_its_arguments_once(site: Site, provider: ProviderServer, http: httpx2.Client) -> None:
    wrong, right = [("put", "c1", {"wat": 1})], [("put", "c2", {"what": "ok"})]
    provider.script.extend(script("openai-chat", wrong, right, "Done.", wrong, right, "Done again."))
    conversation = talk(site.client, http, provider.url, "openai-chat")
    with site.worker():
        assert conversation.say("Do it.", step="q1").text == "Done."
        assert conversation.say("Again.", step="q2").text == "Done again."  # a success has reset the count

    told = [message["content"] for message in last_history(provider) if message["role"] == "tool"]
    assert "Correct the arguments and call it again." in told[0]
    assert site.ledger.lines() == ["put ok", "put ok"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_after_the_second_wrong_call_the_user_is_told_and_the_model_is_not_asked(
    site: Site, provider: ProviderServer, http: httpx2.Client, dialect: Dialect
) -> None:
    wrong = [("put", "c1", {"wat": 1}), ("put", "c2", {"wat": 2})]
    again = [("put", "c3", {"wat": 1})]
    provider.script.extend(script(dialect, wrong, again, "Never asked."))
    conversation = talk(site.client, http, provider.url, dialect, terms=Terms("es"))
    answer = conversation.say("Do it.", step="q1")

    assert answer.ended == "gave_up"
    assert "put" in answer.text
    assert "no se ha" in answer.text.lower()
    assert len(provider.requests) == 2
    assert conversation.resume().text == answer.text
    assert len(provider.requests) == 2
    provider.script.clear()
    provider.script.extend(script(dialect, "Fine."))
    said = conversation.say("Never mind.", step="q2").text
    assert (said, provider.refusals) == ("Fine.", [])  # the history is still one that providers take
    assert provider.refusals == []


def test_a_model_that_goes_round_in_circles_is_stopped(
    site: Site, provider: ProviderServer, http: httpx2.Client
) -> None:
    provider.script.extend(script("anthropic", *[[("look", f"c{n}", {"what": "x"})] for n in range(10)]))
    with site.worker():
        conversation = talk(site.client, http, provider.url, "anthropic", terms=Terms(turns=3))
        answer = conversation.say("Go.", step="q1")

    assert answer.ended == "gave_up"
    assert len(provider.requests) == 3


def test_two_harnesses_of_one_conversation_go_on_with_the_same_turns(
    site: Site, provider: ProviderServer, http: httpx2.Client
) -> None:
    provider.script.extend([*script("anthropic", "One."), *script("anthropic", "Two.")])
    first = talk(site.client, http, provider.url, "anthropic")
    second = talk(site.client, http, provider.url, "anthropic")
    second_ask = second._ask
    met: list[Answer] = []

    def ask_after_another_has(messages: list[Any]) -> Any:
        met.append(first.say("Hi.", step="q1"))
        return second_ask(messages)

    second._ask = ask_after_another_has
    assert second.say("Hi.", step="q1").text == met[0].text == "One."


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_question_after_one_that_got_no_turn_is_asked_with_it(
    site: Site, provider: ProviderServer, http: httpx2.Client, dialect: Dialect
) -> None:
    provider.script.extend([Reply(b"{}", 400), *script(dialect, "To both.")])
    conversation = talk(site.client, http, provider.url, dialect)

    assert conversation.say("A?", step="a").ended == "no_turn"
    assert conversation.say("B?", step="b").text == "To both."
    assert [text for text in ("A?", "B?") if text not in json.dumps(last_history(provider))] == []
    assert provider.refusals == []


def test_of_two_questions_asked_at_once_neither_is_lost(
    site: Site, provider: ProviderServer, http: httpx2.Client
) -> None:
    provider.script.extend(script("anthropic", CALLS, "To both.", "Came too late."))
    first = talk(site.client, http, provider.url, "anthropic")
    second = talk(site.client, http, provider.url, "anthropic")
    first_ask = first._ask
    met: list[Answer] = []

    def ask_while_another_does(messages: list[Any]) -> Any:
        if not met:
            met.append(second.say("B?", step="b"))
        return first_ask(messages)

    first._ask = ask_while_another_does
    with site.worker():
        said = first.say("A?", step="a")

    assert said.text == met[0].text == "To both."
    assert [text for text in ("A?", "B?") if text not in json.dumps(first.messages)] == []
    assert site.ledger.lines("put") == ["put one"]
    assert (list(provider.script), provider.refusals) == ([], [])


def test_a_conversation_with_secret_fields_is_sealed_or_not_kept(
    site: Site, provider: ProviderServer, http: httpx2.Client
) -> None:
    site.connection.run(publish(site.connection.space, [ToolSpec("login", secret=("password",))]))
    provider.script.extend(script("anthropic", [("login", "c1", {"password": "hunter2"})]) * 2)
    with pytest.raises(KeyringMissing, match="TOOLONCE_KEYS"):
        talk(site.client, http, provider.url, "anthropic").say("Log in.", step="q1")
    assert "hunter2" not in kept(site, site.client)

    keyed = Client(site.url, scope="tenant-1/talk-2", namespace=site.namespace, keyring=Keyring.parse("k" * 32))
    sealed: Conversation = talk(keyed, http, provider.url, "anthropic", terms=Terms(wait_s=0.01))
    assert sealed.say("Log in.", step="q1").ended == "running"
    assert "hunter2" in json.dumps(sealed.messages)
    assert "hunter2" not in kept(site, keyed)
    keyed.close()


def kept(site: Site, client: Client) -> str:
    return str(site.connection.command("HGETALL", f"{{{site.namespace}}}:journal:{client.terms.scope}"))


def test_a_turn_that_used_up_the_tokens_of_its_request_runs_nothing(
    site: Site, provider: ProviderServer, http: httpx2.Client
) -> None:
    """Faults 19: its recorded usage is 7 output tokens."""
    provider.script.extend(script("anthropic", CALLS))
    said = talk(site.client, http, provider.url, "anthropic", terms=Terms(max_tokens=7)).say("Do it.", step="q1")

    assert said.ended == "no_turn"
    assert said.turn is not None
    assert (said.turn.outcome, said.turn.truncated, site.ledger.lines()) == ("truncated", True, [])
