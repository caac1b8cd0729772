"""The queue limits: how many calls may wait, in one queue and of one tenant, before new ones are refused.

Decides where the numbers come from: arguments, then the environment, then defaults. `admit.lua` applies them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TypedDict

from ...store.model.errors import StoreMisuse


class QueueLimits(TypedDict, total=False):
    """Options of clients and inbox consumers.

    Attributes:
        queue_limit: most calls in one queue; 0 for no limit. Default: ``TOOLONCE_QUEUE_LIMIT``, else 100,000.
        tenant_queue_limit: most queued calls of one tenant, so that no tenant fills a queue. Calls that wait for a slot
            or for another attempt count. 0 for no limit. Default: ``TOOLONCE_TENANT_QUEUE_LIMIT``, else 20,000.
    """

    queue_limit: int
    tenant_queue_limit: int


DEFAULTS: Mapping[str, int] = {"queue_limit": 100_000, "tenant_queue_limit": 20_000}


def complete(given: QueueLimits, environment: Mapping[str, str] = os.environ) -> QueueLimits:
    """Both limits: each from the argument, else the environment, else the default.

    Raises:
        StoreMisuse: a limit is not an integer, or negative.
        TypeError: there is no limit of this name.
    """
    if strange := given.keys() - DEFAULTS.keys():
        raise TypeError(f"unexpected argument {min(strange)!r}")
    found = {name: _limit(name, given.get(name), environment) for name in DEFAULTS}
    return QueueLimits(queue_limit=found["queue_limit"], tenant_queue_limit=found["tenant_queue_limit"])


def _limit(name: str, given: object, environment: Mapping[str, str]) -> int:
    variable = f"TOOLONCE_{name.upper()}"
    value = environment.get(variable) or DEFAULTS[name] if given is None else given
    try:
        number = int(value) if isinstance(value, (int, str)) and not isinstance(value, bool) else -1
    except ValueError:
        number = -1
    if number < 0:
        where = variable if given is None else name
        raise StoreMisuse(f"{where}={value!r}: use a number of calls, or 0 for no limit")
    return number
