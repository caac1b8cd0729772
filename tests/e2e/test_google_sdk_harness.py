"""Harnesses that keep Google's SDK: it streams as it always did, and a transport shows its bytes to our decoder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.processes.workers import Site
from tests.support.servers.redis_server import RealServer
from tests.support.stream.provider_server import ProviderServer
from tests.support.stream.speech import stream
from toolonce.stream.decoding.decoder import TurnDecoder
from toolonce.stream.dialects.request import user_message
from toolonce.stream.turns.turn import Dialect, TurnResult

genai = pytest.importorskip("google.genai", reason="Google's SDK is not installed")

CALLS: list[tuple[str, str, dict[str, Any]]] = [("put", "call_1", {"what": "one"}), ("look", "call_2", {"what": "x"})]


class Listening(httpx2.HTTPTransport):
    """A transport that shows each chunk of a response to the decoder before the SDK sees it."""

    decoder: TurnDecoder

    def handle_request(self, request: Any) -> Any:
        response = super().handle_request(request)
        return httpx2.Response(
            response.status_code, headers=response.headers, stream=Shown(response.stream, self.decoder)
        )


class Shown(httpx2.SyncByteStream):
    def __init__(self, inner: Any, decoder: TurnDecoder) -> None:
        self._inner, self._decoder = inner, decoder

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._inner:
            self._decoder.feed(chunk)
            yield chunk

    def close(self) -> None:
        self._inner.close()


def ask(dialect: Dialect, client: Any, history: list[dict[str, Any]]) -> None:
    """Have the SDK stream a turn to its end."""
    if dialect == "google-generate":
        typed = [genai.types.Content.model_validate(content) for content in history]
        config = genai.types.GenerateContentConfig(automatic_function_calling={"disable": True})
        turn = client.models.generate_content_stream(model="m", contents=typed, config=config)
    else:
        turn = client.interactions.create(model="m", input=history, stream=True, store=False)
    for _ in turn:
        pass


def read(dialect: Dialect, url: str, history: list[dict[str, Any]]) -> TurnResult:
    transport = Listening()
    transport.decoder = TurnDecoder(dialect)
    options = genai.types.HttpOptions(base_url=url, client_args={"transport": transport})
    with genai.Client(api_key="none", http_options=options) as client:
        ask(dialect, client, history)
    return transport.decoder.eof()


@pytest.mark.parametrize("dialect", ["google-generate", "google-interactions"])
def test_googles_sdk_asks_and_we_run_what_the_model_wants_once(
    redis_server: RealServer, namespace: str, tmp_path: Path, dialect: Dialect
) -> None:
    site = Site(redis_server.url, namespace, tmp_path)
    history = [user_message("Do it.", dialect)]
    with ProviderServer() as provider, site.worker():
        provider.script.extend([stream(dialect, "turn-1", CALLS), stream(dialect, "turn-2", (), "All done.")])
        batch = site.client.submit(read(dialect, provider.url, history))
        batch.wait(30)
        history += [*batch.history(), *batch.replies()]
        last = read(dialect, provider.url, history)
    site.close()

    assert last.text == "All done."
    assert provider.refusals == []
    assert sorted(site.ledger.lines()) == ["look x", "put one"]
