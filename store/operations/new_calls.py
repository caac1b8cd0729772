"""What admission is asked for: a turn, its new calls with their identities, and the request itself.

Pure. `admission` has the operations.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..model.outcomes import Failure
from ..model.specs import ToolSpec
from .fence_watermark import FenceWatermark


@dataclass(frozen=True, slots=True)
class Identified:
    """A call with its identity: what lookup needs.

    Attributes:
        fingerprints: one per configured key, the current key's first; unkeyed where there is no keyring.
        by_intent: named by an intent key, and not by its turn and place.
    """

    key: str
    fingerprints: tuple[str, ...]
    by_intent: bool = False

    @property
    def idempotency_key(self) -> str:
        return f"{self.key}-{self.fingerprints[0]}"


@dataclass(frozen=True, slots=True)
class NewCall:
    """A call that is to be stored: what was asked for, and what the tool's spec makes of it.

    Attributes:
        arguments: JSON text; for custom tools the JSON text of the input text; encrypted where `secret`.
        refusal: set where admission refuses the call; it is stored with this answer and never run.
        held: reason to hold it (``approval``, ``no_worker``), or "".
        lanes: order keys; calls that share one run one by one, in order of admission.
        predecessors: call keys that must succeed first.
        after: tools whose calls of this turn must succeed first, where they are stored by then.
        unique_keys: under every configured key, the newest one's first; () where its tool has none.
    """

    identity: Identified
    tool: str
    arguments: str
    position: int
    call_id: str | None
    spec: ToolSpec | None = None
    kind: str = "function"
    refusal: Failure | None = None
    held: str = ""
    lanes: tuple[str, ...] = ()
    predecessors: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    unique_keys: tuple[str, ...] = ()
    echo: dict[str, Any] = field(default_factory=dict)
    key_id: str = ""
    secret: bool = False
    trace: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """The unit of admission: whose it is, and under what its calls are listed."""

    scope: str
    turn_id: str
    key: str
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class InboxEntry:
    """The inbox entry that admission acknowledges in the same step, and the stream where its answers go."""

    stream: str
    group: str
    entry: str
    answers: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """One wish to admit, whole: sent again under its id it is answered, not done again.

    Attributes:
        queue_limit: most calls that a queue may hold; 0 for no limit.
        tenant_queue_limit: most queued calls of the turn's tenant; 0 for no limit.
        entry: the inbox entry that asks, if one does.
        specs_version: of the published specs by which the new calls were validated; None where it does not matter.
        watermark: the highest fence that the harness has seen: a store that knows less is flagged before anything is
            stored, and what the store knows is noted here.
    """

    id: str
    queue_limit: int = 0
    tenant_queue_limit: int = 0
    entry: InboxEntry | None = None
    specs_version: int | None = None
    watermark: FenceWatermark = field(default_factory=FenceWatermark)
