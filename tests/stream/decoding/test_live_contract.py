"""The live providers, one forced call each: our decoder and the vendor's library see the same, and it is recorded.

Skipped without a key in the environment. Run it by `make contract`; each run costs a few hundred tokens.
"""

from __future__ import annotations

import json
import os
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from toolonce.stream import TurnDecoder, detect_dialect
from toolonce.stream.turns.turn import Dialect

RECORD_TO = Path(os.environ.get("TOOLONCE_CONTRACT_DIR") or Path(__file__).resolve().parents[2] / "data" / "live")
ASK = "What is the weather in Zürich and in 東京? Use the tool, once for each city."
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ABOUT = "The weather of one city"


@dataclass(frozen=True)
class Provider:
    """How one dialect is asked for a stream with calls. ``{model}`` in the URL is filled in."""

    dialect: Dialect
    key: str
    model: str
    url: str
    header: str
    body: dict[str, Any]

    @property
    def chosen(self) -> str:
        return os.environ.get(f"TOOLONCE_MODEL_{self.dialect.upper().replace('-', '_')}") or self.model


FUNCTION = {"name": "get_weather", "description": ABOUT, "parameters": SCHEMA}
PROVIDERS = [
    Provider(
        "openai-responses", "OPENAI_API_KEY", "gpt-5-mini", "https://api.openai.com/v1/responses", "Authorization",
        {"input": ASK, "stream": True, "tool_choice": "required", "tools": [{"type": "function", **FUNCTION}]},
    ),
    Provider(
        "openai-chat", "OPENAI_API_KEY", "gpt-5-mini", "https://api.openai.com/v1/chat/completions", "Authorization",
        {
            "messages": [{"role": "user", "content": ASK}], "stream": True, "tool_choice": "required",
            "tools": [{"type": "function", "function": FUNCTION}], "stream_options": {"include_usage": True},
        },
    ),
    Provider(
        "anthropic", "ANTHROPIC_API_KEY", "claude-haiku-4-5", "https://api.anthropic.com/v1/messages", "x-api-key",
        {
            "messages": [{"role": "user", "content": ASK}], "stream": True, "max_tokens": 500,
            "tool_choice": {"type": "any"},
            "tools": [{"name": "get_weather", "description": ABOUT, "input_schema": SCHEMA}],
        },
    ),
    Provider(
        "google-generate", "GEMINI_API_KEY", "gemini-2.5-flash",
        "https://generativelanguage.googleapis.com/v1beta/models/{model}:streamGenerateContent?alt=sse",
        "x-goog-api-key",
        {
            "contents": [{"role": "user", "parts": [{"text": ASK}]}],
            "tools": [{"functionDeclarations": [FUNCTION]}], "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
        },
    ),
    Provider(
        "google-interactions", "GEMINI_API_KEY", "gemini-2.5-flash",
        "https://generativelanguage.googleapis.com/v1beta/interactions", "x-goog-api-key",
        {"input": ASK, "stream": True, "tools": [{"type": "function", **FUNCTION}]},
    ),
    Provider(
        "cohere", "COHERE_API_KEY", "command-a-03-2025", "https://api.cohere.com/v2/chat", "Authorization",
        {
            "messages": [{"role": "user", "content": ASK}], "stream": True, "tool_choice": "REQUIRED",
            "tools": [{"type": "function", "function": FUNCTION}],
        },
    ),
]  # fmt: skip


def request(provider: Provider) -> urllib.request.Request:
    key = os.environ[provider.key]
    headers = {
        "Content-Type": "application/json",
        "anthropic-version": "2023-06-01",
        provider.header: f"Bearer {key}" if provider.header == "Authorization" else key,
    }
    named = provider.body if "{model}" in provider.url else {**provider.body, "model": provider.chosen}
    url = provider.url.format(model=provider.chosen)
    return urllib.request.Request(url, json.dumps(named).encode(), headers)


@pytest.mark.parametrize("provider", [pytest.param(provider, id=provider.dialect) for provider in PROVIDERS])
def test_a_live_stream_means_to_us_what_it_means_to_its_vendor(provider: Provider) -> None:
    if not os.environ.get(provider.key):
        pytest.skip(f"{provider.key} is not set")
    RECORD_TO.mkdir(parents=True, exist_ok=True)
    recording = RECORD_TO / f"{provider.dialect}.sse"
    decoder = TurnDecoder(provider.dialect, record=recording)
    with urllib.request.urlopen(request(provider), timeout=60) as response:
        while chunk := response.read1(4096):
            decoder.feed(chunk)
    result = decoder.eof()

    assert result.outcome == "completed", result.diagnostics
    assert result.turn_id
    assert {call.name for call in result.calls} == {"get_weather"}
    data = recording.read_bytes()
    assert detect_dialect(data) == provider.dialect
    assert os.environ[provider.key].encode() not in data
    pytest.importorskip("google.genai", reason="the vendors' libraries are not installed")
    from tests.support.stream.vendor_sdks import CALLS

    ours = [(call.name, call.call_id, call.arguments) for call in result.calls]
    assert ours == CALLS[provider.dialect](data)
