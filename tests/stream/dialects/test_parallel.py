"""At most one call per turn can be asked for where the provider offers it, and nowhere is it silently not done."""

from __future__ import annotations

import pytest

from toolonce.stream.dialects.request import forbid_parallel_calls
from toolonce.stream.turns.errors import NotOffered, UnknownDialect
from toolonce.stream.turns.turn import Dialect

TOOLS = [{"name": "t"}]


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses"])
def test_openai_is_told_by_its_flag(dialect: Dialect) -> None:
    body = {"tools": TOOLS, "parallel_tool_calls": True}

    assert forbid_parallel_calls(body, dialect) == {"tools": TOOLS, "parallel_tool_calls": False}
    assert body["parallel_tool_calls"] is True


@pytest.mark.parametrize("choice", [{"type": "auto"}, {"type": "any"}, {"type": "tool", "name": "t"}])
def test_anthropic_is_told_inside_the_tool_choice(choice: dict[str, str]) -> None:
    told = forbid_parallel_calls({"tools": TOOLS, "tool_choice": choice}, "anthropic")

    assert told["tool_choice"] == {**choice, "disable_parallel_tool_use": True}
    assert "disable_parallel_tool_use" not in choice


def test_anthropic_gets_a_tool_choice_where_there_was_none() -> None:
    told = forbid_parallel_calls({"tools": TOOLS}, "anthropic")

    assert told["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}


def test_a_choice_of_no_tools_stays_as_it_is() -> None:
    body = {"tools": TOOLS, "tool_choice": {"type": "none"}}

    assert forbid_parallel_calls(body, "anthropic") == body


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses", "anthropic"])
def test_a_request_without_tools_gets_no_switch_since_it_would_be_refused(dialect: Dialect) -> None:
    assert forbid_parallel_calls({"model": "m"}, dialect) == {"model": "m"}


@pytest.mark.parametrize("dialect", ["google-generate", "google-interactions", "ollama", "cohere"])
def test_where_there_is_no_switch_the_error_names_the_way_out(dialect: Dialect) -> None:
    with pytest.raises(NotOffered, match="ordered=True"):
        forbid_parallel_calls({"tools": TOOLS}, dialect)


def test_an_unknown_dialect_is_refused() -> None:
    with pytest.raises(UnknownDialect):
        forbid_parallel_calls({}, "openai")  # type: ignore[arg-type]
