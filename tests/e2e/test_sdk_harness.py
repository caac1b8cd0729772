"""Harnesses that keep the vendors' own SDKs: these send the requests and the histories, we read the streams and have
the calls run. The server judges every request as the provider would."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes.workers import Site
from tests.support.servers.redis_server import RealServer
from tests.support.stream.provider_server import ProviderServer
from tests.support.stream.speech import stream
from toolonce.stream.decoding.decoder import TurnDecoder
from toolonce.stream.dialects.request import user_message
from toolonce.stream.turns.turn import Dialect, TurnResult

openai = pytest.importorskip("openai", reason="the vendors' SDKs are not installed")
anthropic = pytest.importorskip("anthropic", reason="the vendors' SDKs are not installed")

Ask = Callable[[list[dict[str, Any]]], Any]


def _chat(url: str) -> Ask:
    client = openai.OpenAI(api_key="none", base_url=f"{url}/v1", max_retries=0)
    return lambda history: client.chat.completions.with_streaming_response.create(
        model="m", messages=history, stream=True
    )


def _responses(url: str) -> Ask:
    client = openai.OpenAI(api_key="none", base_url=f"{url}/v1", max_retries=0)
    return lambda history: client.responses.with_streaming_response.create(model="m", input=history, stream=True)


def _anthropic(url: str) -> Ask:
    client = anthropic.Anthropic(api_key="none", base_url=url, max_retries=0)
    return lambda history: client.messages.with_streaming_response.create(
        model="m", max_tokens=100, messages=history, stream=True
    )


SDKS = {"openai-chat": _chat, "openai-responses": _responses, "anthropic": _anthropic}


@pytest.fixture
def provider() -> Iterator[ProviderServer]:
    with ProviderServer() as server:
        yield server


def read(dialect: Dialect, ask: Ask, history: list[dict[str, Any]]) -> TurnResult:
    decoder = TurnDecoder(dialect)
    with ask(history) as response:
        for chunk in response.iter_bytes():
            decoder.feed(chunk)
    return decoder.eof()


@pytest.mark.parametrize("dialect", SDKS)
def test_an_sdk_asks_and_we_run_what_the_model_wants_once(
    redis_server: RealServer, namespace: str, tmp_path: Path, provider: ProviderServer, dialect: Dialect
) -> None:
    site = Site(redis_server.url, namespace, tmp_path)
    calls = [
        ("put", "call_1", {"what": "one"}),
        ("fail", "call_2", {"message": "no"}),
        ("look", "call_3", {"what": "x"}),
    ]
    provider.script.extend([stream(dialect, "turn-1", calls), stream(dialect, "turn-2", (), "All done.")])
    ask = SDKS[dialect](provider.url)
    history = [user_message("Do it.", dialect)]
    with site.worker():
        batch = site.client.submit(read(dialect, ask, history))
        batch.wait(30)
        history += [*batch.history(), *batch.replies()]
        last = read(dialect, ask, history)
    site.close()

    assert last.text == "All done."
    assert provider.refusals == []
    assert sorted(site.ledger.lines()) == ["look x", "put one"]
