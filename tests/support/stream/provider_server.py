"""A local server that plays the providers' endpoints: it judges each request as they would and answers.

A good request gets the next scripted answer, or a short text in the dialect's own shape; a bad one gets the provider's
400 with the reason. All requests are kept for the test to look at. An answer may be a fault, too: a status, a line that
is cut, silence until the test opens a gate.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from tests.support.stream.provider_rules import refusal

_TEXT = "Done."
ANSWERS: dict[str, dict[str, Any]] = {
    "openai-chat": {
        "id": "chatcmpl-9",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": _TEXT}, "finish_reason": "stop"}],
    },
    "openai-responses": {
        "id": "resp_9",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "completed",
        "output": [
            {
                "type": "message",
                "id": "msg_9",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": _TEXT, "annotations": []}],
            }
        ],
    },
    "anthropic": {
        "id": "msg_9",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": _TEXT}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    },
    "google-generate": {
        "responseId": "r9",
        "candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": _TEXT}]}, "finishReason": "STOP"}],
    },
    "bedrock-converse": {
        "output": {"message": {"role": "assistant", "content": [{"text": _TEXT}]}},
        "stopReason": "end_turn",
        "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
        "metrics": {"latencyMs": 7},
    },
    "ollama": {
        "model": "m",
        "created_at": "2026-01-02T03:04:05Z",
        "message": {"role": "assistant", "content": _TEXT},
        "done": True,
        "done_reason": "stop",
    },
    "cohere": {
        "id": "coh_9",
        "message": {"role": "assistant", "content": [{"type": "text", "text": _TEXT}]},
        "finish_reason": "COMPLETE",
        "usage": {"tokens": {"input_tokens": 1, "output_tokens": 1}},
    },
    "google-interactions": {
        "id": "int_9",
        "status": "completed",
        "steps": [{"type": "model_output", "content": [{"type": "text", "text": _TEXT}]}],
    },
}


@dataclass(frozen=True)
class Reply:
    """A scripted answer.

    Attributes:
        promised: bytes that the header promises beyond those that come: the line is cut in the middle.
        gate: after how many bytes the server falls silent until `open` is set.
        pieces: bytes written at a time; 0 for all at once.
    """

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    promised: int = 0
    gate: int | None = None
    open: threading.Event = field(default_factory=threading.Event)
    pieces: int = 0

    def parts(self) -> list[bytes]:
        if self.gate is not None:
            return [self.body[: self.gate], self.body[self.gate :]]
        step = self.pieces or len(self.body) or 1
        return [self.body[at : at + step] for at in range(0, len(self.body), step)]


def content_type(body: bytes) -> str:
    if body.startswith((b"event:", b"data:")):
        return "text/event-stream"
    return "application/vnd.amazon.eventstream" if body.startswith(b"\0") else "application/json"


def dialect_of(path: str) -> str | None:
    """The dialect that an endpoint speaks."""
    route = path.split("?")[0]
    endings = {
        "/chat/completions": "openai-chat",
        "/responses": "openai-responses",
        "/messages": "anthropic",
        ":generateContent": "google-generate",
        ":streamGenerateContent": "google-generate",
        "/converse": "bedrock-converse",
        "/converse-stream": "bedrock-converse",
        "/interactions": "google-interactions",
        "/api/chat": "ollama",
        "/v2/chat": "cohere",
    }
    return next((dialect for ending, dialect in endings.items() if route.endswith(ending)), None)


class ProviderServer:
    """Use as a context manager. ``requests`` holds (dialect, body) of all requests, ``refusals`` the reasons given."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.refusals: list[str] = []
        self.script: deque[bytes | Reply] = deque()
        self._open_gates: list[threading.Event] = []
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = False  # closing waits for the last answer: no thread outlives the test
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> ProviderServer:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        for gate in self._open_gates:
            gate.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def answer(self, dialect: str | None, body: dict[str, Any]) -> Reply:
        """The answer for one request."""
        if dialect is None:
            return Reply(b'{"error":{"message":"no such endpoint"}}', 404)
        self.requests.append((dialect, body))
        if reason := refusal(dialect, body):
            self.refusals.append(reason)
            error = {"type": "error", "error": {"type": "invalid_request_error", "code": 400, "message": reason}}
            return Reply(json.dumps(error).encode(), 400)
        scripted = self.script.popleft() if self.script else json.dumps(ANSWERS[dialect]).encode()
        reply = scripted if isinstance(scripted, Reply) else Reply(scripted)
        self._open_gates.append(reply.open)
        return reply


def _handler(server: ProviderServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            reply = server.answer(dialect_of(self.path), body)
            kind = content_type(reply.body)
            self.send_response(reply.status)
            headers = {"content-type": kind, "content-length": str(len(reply.body) + reply.promised)}
            for name, value in (headers | dict(reply.headers)).items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(OSError):  # a client that stopped reading has gone
                self.write(reply)

        def write(self, reply: Reply) -> None:
            for number, part in enumerate(reply.parts()):
                if number and reply.gate is not None:
                    reply.open.wait(30)
                self.wfile.write(part)
                self.wfile.flush()

        def log_message(self, *_: object) -> None:
            pass

    return Handler
