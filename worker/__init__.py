"""The work: tools, their execution under a lease, and the life of a worker process.

Exports the public names. What declares a tool is loaded at once; what runs a worker process, and the test kit, at its
first use.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ..store.first_use import at_first_use
from ..store.model.parts import (
    FilePart,
    ImagePart,
    JsonPart,
    Parts,
    TextPart,
)
from ..store.model.specs import Effect
from .tools.authorize import (
    Allow,
    Ask,
    Deny,
    Hook,
    Rules,
)
from .tools.call import Call, CallChannel
from .tools.connection_errors import (
    not_started,
    nothing_was_sent,
)
from .tools.errors import (
    BadTool,
    CancelRequested,
    DidNotHappen,
    LeaseLost,
    NotStarted,
    NotThroughRQ,
    StopAttempt,
    ToolError,
    ToolsNotLoaded,
    WorkerError,
)
from .tools.mcp_tools import (
    annotations_of,
    effect_of,
)
from .tools.options import Isolation, SecretResult, ToolOptions
from .tools.registry import Registry
from .tools.retries import Retry
from .tools.tool import Tool

if TYPE_CHECKING:
    from .execution.replicas import RequiredReplicas
    from .runtime.process import (
        Options,
        run_worker,
    )
    from .testing import Fault, Trial, call_for, try_out
    from .tools.loading import load_registry

__all__ = [
    "Allow",
    "Ask",
    "BadTool",
    "Call",
    "CallChannel",
    "CancelRequested",
    "Deny",
    "DidNotHappen",
    "Effect",
    "Fault",
    "FilePart",
    "Hook",
    "ImagePart",
    "Isolation",
    "JsonPart",
    "LeaseLost",
    "NotStarted",
    "NotThroughRQ",
    "Options",
    "Parts",
    "Registry",
    "RequiredReplicas",
    "Retry",
    "Rules",
    "SecretResult",
    "StopAttempt",
    "TextPart",
    "Tool",
    "ToolError",
    "ToolOptions",
    "ToolsNotLoaded",
    "Trial",
    "WorkerError",
    "annotations_of",
    "call_for",
    "effect_of",
    "load_registry",
    "not_started",
    "nothing_was_sent",
    "run_worker",
    "try_out",
]

# A library decides no logging: without this, Python prints warnings of a program that set none up to its stderr.
for _name in ("toolonce.worker", "toolonce.tool"):
    logging.getLogger(_name).addHandler(logging.NullHandler())

# Module -> the names that it defines. Type checkers read the imports above and see no `__getattr__`: they find misspelt
# names.
_AT_FIRST_USE: dict[str, tuple[str, ...]] = {
    ".execution.replicas": ("RequiredReplicas",),
    ".runtime.process": (
        "Options",
        "run_worker",
    ),
    ".testing": ("Fault", "Trial", "call_for", "try_out"),
    ".tools.loading": ("load_registry",),
}

if not TYPE_CHECKING:
    __getattr__ = at_first_use(__name__, _AT_FIRST_USE)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
