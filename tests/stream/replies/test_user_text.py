"""A user is told the truth about what ran, in their language, and nothing of what providers and tools said."""

from __future__ import annotations

from typing import Any

import pytest

from toolonce.store.model.outcomes import Failure, Outcome
from toolonce.store.model.states import State
from toolonce.stream.replies.translations import TRANSLATIONS, MessageCode, Translations
from toolonce.stream.replies.user_text import for_user, message_code
from toolonce.stream.turns.errors import turn_error
from toolonce.stream.turns.turn import TurnResult
from toolonce.stream.wire.frames import ProviderError

EVERY_CODE = pytest.mark.parametrize("code", MessageCode)
NOTHING_DONE = {
    "en": ("Nothing was done", "No action"),
    "es": ("No se ha",),
    "nl": ("Er is niets", "Geen enkele actie"),
}


def outcome(state: State | None, code: str = "", **fields: Any) -> Outcome:
    return Outcome("k", "k-f", "pay", "id", 0, state, failure=Failure(code, "secret prose") if code else None, **fields)


@EVERY_CODE
def test_every_message_exists_in_every_language_and_differs_between_them(code: MessageCode) -> None:
    texts = {language: TRANSLATIONS.texts[language][code] for language in ("en", "es", "nl")}

    assert len(set(texts.values())) == 3
    assert len({"{tool}" in text for text in texts.values()}) == 1


@EVERY_CODE
def test_where_nothing_ran_every_language_says_so_and_nowhere_else(code: MessageCode) -> None:
    said = {
        language: any(words in TRANSLATIONS.texts[language][code] for words in NOTHING_DONE[language])
        for language in NOTHING_DONE
    }

    assert len(set(said.values())) == 1


@pytest.mark.parametrize("state", [State.UNKNOWN, State.RUNNING, State.FAILED])
@pytest.mark.parametrize("language", NOTHING_DONE)
def test_a_call_that_was_entered_is_never_said_to_have_done_nothing(state: State, language: str) -> None:
    text = for_user(outcome(state), language)

    assert "pay" in text
    assert not any(words in text for words in NOTHING_DONE[language])


@pytest.mark.parametrize(
    ("told", "code"),
    [
        (outcome(State.SUCCEEDED), MessageCode.CALL_SUCCEEDED),
        (outcome(State.UNKNOWN, "outcome_unknown"), MessageCode.CALL_UNKNOWN),
        (outcome(State.REFUSED, "invalid_arguments"), MessageCode.CALL_INVALID),
        (outcome(State.REFUSED, "unknown_tool"), MessageCode.CALL_INVALID),
        (outcome(State.REFUSED, "denied"), MessageCode.CALL_DENIED),
        (outcome(State.REFUSED, "hook"), MessageCode.CALL_REFUSED),
        (outcome(State.CANCELLED), MessageCode.CALL_CANCELLED),
        (outcome(State.EXPIRED), MessageCode.CALL_EXPIRED),
        (outcome(State.HELD, marks={"reason": "approval"}), MessageCode.CALL_NEEDS_APPROVAL),
        (outcome(State.HELD, marks={"reason": "order"}), MessageCode.CALL_WAITING),
        (outcome(State.HELD, marks={"reason": "duplicate"}), MessageCode.CALL_NEEDS_APPROVAL),
        (outcome(State.HELD, marks={"reason": "duplicate", "follows": "k"}), MessageCode.CALL_WAITING),
        (
            outcome(State.HELD, marks={"reason": "duplicate", "follows": "k", "first_state": "unknown"}),
            MessageCode.CALL_UNKNOWN,
        ),
        (outcome(State.REFUSED, "unique_taken"), MessageCode.CALL_REFUSED),
        (outcome(State.SUCCEEDED, conflict=True), MessageCode.CALL_CONFLICT),
        (outcome(None, "invalid_arguments"), MessageCode.CALL_INVALID),
        (outcome(None), MessageCode.CALL_WAITING),
    ],
)
def test_an_outcome_has_the_message_that_fits(told: Outcome, code: MessageCode) -> None:
    assert message_code(told) is code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ProviderError(status=429), MessageCode.PROVIDER_BUSY),
        (ProviderError(code="overloaded_error"), MessageCode.PROVIDER_BUSY),
        (ProviderError(status="RESOURCE_EXHAUSTED"), MessageCode.PROVIDER_BUSY),
        (ProviderError(status=400, code="invalid_request_error"), MessageCode.PROVIDER_REFUSED),
        (ProviderError(status=401), MessageCode.PROVIDER_REFUSED),
        (ProviderError(status=500), MessageCode.PROVIDER_FAILED),
        (None, MessageCode.PROVIDER_FAILED),
    ],
)
def test_a_failed_turn_tells_a_busy_provider_from_a_broken_one(error: ProviderError | None, code: MessageCode) -> None:
    assert message_code(TurnResult("anthropic", "failed", error=error)) is code


@pytest.mark.parametrize("ended", ["truncated", "filtered", "aborted", "malformed", "withheld", "failed"])
@pytest.mark.parametrize("language", NOTHING_DONE)
def test_a_turn_without_calls_says_that_no_action_was_carried_out(ended: Any, language: str) -> None:
    error = turn_error(ended, dialect="anthropic", message="provider prose", code="x")

    text = for_user(error, language)

    assert any(words in text for words in NOTHING_DONE[language])
    assert "prose" not in text
    assert text == for_user(TurnResult("anthropic", ended), language)


def test_a_completed_turn_has_no_message_but_its_own_text() -> None:
    with pytest.raises(ValueError, match="show its own text"):
        for_user(TurnResult("anthropic", "completed", text="Hello"))


@pytest.mark.parametrize(
    ("locale", "language"), [("nl-BE", "nl"), ("nl_BE", "nl"), ("ES", "es"), ("en-GB", "en"), ("pt", "en"), ("", "en")]
)
def test_a_locale_finds_its_nearest_language(locale: str, language: str) -> None:
    assert for_user(outcome(State.FAILED), locale) == for_user(outcome(State.FAILED), language)


def test_texts_can_be_replaced_and_languages_added_without_touching_the_others() -> None:
    own = TRANSLATIONS.replacing("en", {MessageCode.CALL_FAILED: "Oh no, {tool}!"})
    own = own.replacing("pt_BR", {MessageCode.CALL_FAILED: "{tool} falhou."})

    assert for_user(outcome(State.FAILED), translations=own) == "Oh no, pay!"
    assert for_user(outcome(State.FAILED), "pt-BR", translations=own) == "pay falhou."
    assert for_user(outcome(State.CANCELLED), "pt-BR", translations=own) == for_user(outcome(State.CANCELLED), "en")
    assert for_user(outcome(State.FAILED)) != "Oh no, pay!"


def test_a_tools_name_is_never_read_as_a_template() -> None:
    text = TRANSLATIONS.text(MessageCode.CALL_FAILED, tool="{0.__class__}")

    assert "{0.__class__}" in text


def test_an_empty_catalogue_says_which_code_it_lacks() -> None:
    with pytest.raises(KeyError, match="call_failed"):
        Translations({}).text(MessageCode.CALL_FAILED)
