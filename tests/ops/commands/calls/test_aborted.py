"""Looking at provider turns that were lost."""

from __future__ import annotations

from tests.support.processes.command_line import CommandLine
from tests.support.store.live_store import LiveScene
from toolonce.stream import Aborted, Client


def test_lost_turns_are_shown_with_what_they_may_have_cost(scene: LiveScene, toolonce: CommandLine) -> None:
    lost = Aborted("anthropic", "aborted", "transport: idle", 200, 512, 40, 1.25, 2)
    with Client(scene.live.connection.url, scope="tenant-1/talk", namespace=scene.space.name) as client:
        client.note_aborted(lost)
        client.note_aborted(Aborted("openai-chat", "aborted", "transport: ConnectError", 0, 0, None, 0.1, 1))

    newest, oldest = toolonce("aborted", "--json").json["aborted"]
    assert (oldest["scope"], oldest["tokens_seen"], oldest["bytes_seen"]) == ("tenant-1/talk", 40, 512)
    assert newest["dialect"] == "openai-chat"
    rows = toolonce("aborted").out.splitlines()
    assert [word in rows[2] for word in ("anthropic", "tenant-1/talk", "transport: idle", "512", "40")] == [True] * 5


def test_where_nothing_was_lost_nothing_is_printed(toolonce: CommandLine) -> None:
    said = toolonce("aborted")

    assert (said.code, said.out) == (0, "")
    assert toolonce("aborted", "--json").json == {"aborted": []}
