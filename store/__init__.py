"""The truth about calls: identity, records, states and every script that changes them.

Exports the public names. Errors are loaded at once, all other names at their first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .first_use import at_first_use
from .model.errors import (
    CallIdMissing,
    CallNotSucceeded,
    CorruptRecord,
    KeyringMissing,
    NoToolsPublished,
    StoreError,
    StoreFull,
    StoreMisuse,
    StoreUnavailable,
    StoreUnsafe,
    StoreWentBack,
    ToolonceError,
    TurnIdMissing,
)

if TYPE_CHECKING:
    from .connections.async_connection import AsyncConnection
    from .connections.async_waiting import AsyncWakeups
    from .connections.connection import (
        Connection,
        Link,
        Patience,
    )
    from .connections.durability import Durability
    from .connections.project import (
        Project,
        find_project,
    )
    from .connections.waiting import Wakeups
    from .model.keyring import Key, Keyring
    from .model.keys import Namespace, Timed
    from .model.outcomes import (
        Failure,
        Outcome,
    )
    from .model.parts import (
        FilePart,
        ImagePart,
        JsonPart,
        Part,
        Parts,
        TextPart,
    )
    from .model.secret_texts import Secrets
    from .model.specs import (
        Effect,
        ToolSpec,
    )
    from .model.states import (
        NotStored,
        State,
    )
    from .operations.operation import Arg, Operation
    from .operations.operators import Decision
    from .operations.recovery import Retention

    __version__: str

__all__ = [
    "Arg",
    "AsyncConnection",
    "AsyncWakeups",
    "CallIdMissing",
    "CallNotSucceeded",
    "Connection",
    "CorruptRecord",
    "Decision",
    "Durability",
    "Effect",
    "Failure",
    "FilePart",
    "ImagePart",
    "JsonPart",
    "Key",
    "Keyring",
    "KeyringMissing",
    "Link",
    "Namespace",
    "NoToolsPublished",
    "NotStored",
    "Operation",
    "Outcome",
    "Part",
    "Parts",
    "Patience",
    "Project",
    "Retention",
    "Secrets",
    "State",
    "StoreError",
    "StoreFull",
    "StoreMisuse",
    "StoreUnavailable",
    "StoreUnsafe",
    "StoreWentBack",
    "TextPart",
    "Timed",
    "ToolSpec",
    "ToolonceError",
    "TurnIdMissing",
    "Wakeups",
    "__version__",
    "find_project",
]

# Module -> the names that it defines. Type checkers read the imports above and see no `__getattr__`: they find misspelt
# names.
_AT_FIRST_USE: dict[str, tuple[str, ...]] = {
    ".connections.async_waiting": ("AsyncWakeups",),
    ".connections.waiting": ("Wakeups",),
    ".model.secret_texts": ("Secrets",),
    ".operations.operation": ("Arg", "Operation"),
    ".operations.operators": ("Decision",),
    ".connections.async_connection": ("AsyncConnection",),
    ".connections.connection": (
        "Link",
        "Connection",
        "Patience",
    ),
    ".connections.durability": ("Durability",),
    ".connections.project": (
        "Project",
        "find_project",
    ),
    ".model.keyring": (
        "Key",
        "Keyring",
    ),
    ".model.keys": (
        "Namespace",
        "Timed",
    ),
    ".model.outcomes": (
        "Failure",
        "Outcome",
    ),
    ".model.parts": (
        "Part",
        "FilePart",
        "ImagePart",
        "JsonPart",
        "Parts",
        "TextPart",
    ),
    ".model.specs": (
        "Effect",
        "ToolSpec",
    ),
    ".model.states": (
        "NotStored",
        "State",
    ),
    ".operations.recovery": ("Retention",),
}

if not TYPE_CHECKING:
    _find = at_first_use(__name__, _AT_FIRST_USE)

    def __getattr__(name: str) -> object:
        if name != "__version__":
            return _find(name)
        from importlib.metadata import version

        return version("toolonce")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
