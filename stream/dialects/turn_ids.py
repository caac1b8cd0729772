"""Where each dialect carries the turn's id, when it first appears, and who leaves it out: one table.

Must not decide anything: the readers take the first non-empty one, and ``submit`` refuses a turn without.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..turns.turn import Dialect


@dataclass(frozen=True, slots=True)
class TurnIdSource:
    """One row.

    Attributes:
        member: the path in a frame, and in a whole response where that differs.
        first: the frame in which it first appears.
        missing: who sends none, an empty one, or one that comes again.
    """

    member: str
    first: str
    missing: str


TURN_IDS: dict[Dialect, TurnIdSource] = {
    "openai-responses": TurnIdSource(
        member="response.id; in a body: id",
        first="response.created",
        missing="some proxies start with output_item.added and tell it in response.completed only",
    ),
    "openai-chat": TurnIdSource(
        member="id",
        first="the first chunk; Azure's first one (prompt filter results) has an empty id",
        missing="some compatible servers send none, or draw it from 999 values",
    ),
    "anthropic": TurnIdSource(
        member="message.id; in a body: id",
        first="message_start",
        missing="nobody known",
    ),
    "google-generate": TurnIdSource(
        member="responseId",
        first="the first chunk",
        missing="older servers and some proxies send none",
    ),
    "google-interactions": TurnIdSource(
        member="interaction.id, or interaction_id of a status update; in a body: id",
        first="interaction.created",
        missing="empty with store=false",
    ),
}
