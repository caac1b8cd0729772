"""The work: tools, their execution under a lease, and the life of a worker process."""

import logging

from .tools.authorize import Allow, Ask, Deny
from .tools.call import Call
from .tools.errors import CancelRequested, DidNotHappen, LeaseLost, NotStarted, ToolError
from .tools.registry import Registry
from .tools.retries import Retry
from .tools.tool import Isolation, Tool

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
