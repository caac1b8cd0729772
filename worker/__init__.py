"""The work: tools, their execution under a lease, and the life of a worker process."""

import logging

from .authorize import Allow, Ask, Deny
from .call import Call
from .errors import CancelRequested, DidNotHappen, LeaseLost, NotStarted, ToolError
from .registry import Registry
from .retries import Retry
from .tool import Isolation, Tool

__all__ = [
    "Allow",
    "Ask",
    "Call",
    "CancelRequested",
    "Deny",
    "DidNotHappen",
    "Isolation",
    "LeaseLost",
    "NotStarted",
    "Registry",
    "Retry",
    "Tool",
    "ToolError",
]

# A library decides no logging: without this, Python prints warnings of a program that set none up to its stderr.
for _name in ("toolonce.worker", "toolonce.tool"):
    logging.getLogger(_name).addHandler(logging.NullHandler())
