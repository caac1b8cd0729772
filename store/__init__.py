"""The truth about calls: identity, records, states and every script that changes them.

What the others name is exported here and loaded at its first use; the errors alone are here at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .first_use import at_first_use
from .model.errors import (
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
    from .connections.connection import (
        Connection,
        Patience,
    )
    from .connections.durability import Durability
    from .connections.project import (
        Project,
        find_project,
    )
    from .model.keyring import Keyring
    from .model.keys import Namespace
    from .model.outcomes import (
        Failure,
        Outcome,
    )
    from .model.parts import (
        FilePart,
        ImagePart,
        JsonPart,
        Parts,
        TextPart,
    )
    from .model.specs import (
        Effect,
        ToolSpec,
    )
    from .model.states import (
        NotStored,
        State,
    )
    from .operations.recovery import Retention

    __version__: str

__all__ = [
    "AsyncConnection",
    "CallNotSucceeded",
    "Connection",
    "CorruptRecord",
    "Durability",
    "Effect",
    "Failure",
    "FilePart",
    "ImagePart",
    "JsonPart",
    "Keyring",
    "KeyringMissing",
    "Namespace",
    "NoToolsPublished",
    "NotStored",
    "Outcome",
    "Parts",
    "Patience",
    "Project",
    "Retention",
    "State",
    "StoreError",
    "StoreFull",
    "StoreMisuse",
    "StoreUnavailable",
    "StoreUnsafe",
    "StoreWentBack",
    "TextPart",
    "ToolSpec",
    "ToolonceError",
    "TurnIdMissing",
    "__version__",
    "find_project",
]

# Module -> what it brings. Type checkers read the imports above and see no `__getattr__`: they find misspelt names.
_AT_FIRST_USE: dict[str, tuple[str, ...]] = {
    ".connections.async_connection": ("AsyncConnection",),
    ".connections.connection": (
        "Connection",
        "Patience",
    ),
    ".connections.durability": ("Durability",),
    ".connections.project": (
        "Project",
        "find_project",
    ),
    ".model.keyring": ("Keyring",),
    ".model.keys": ("Namespace",),
    ".model.outcomes": (
        "Failure",
        "Outcome",
    ),
    ".model.parts": (
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
