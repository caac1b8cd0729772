"""What may be declared of a tool, and what each of it means."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal, TypedDict

from tenacity.stop import stop_base
from tenacity.wait import wait_base

from ...store.model.specs import Effect
from .retries import Retry


class Isolation(StrEnum):
    """Where a handler runs."""

    THREAD = "thread"
    """In the slot's thread. It cannot be stopped: at the run limit it is given up and its late end still counts."""
    ASYNC = "async"
    """On the process's one event loop, many at once. At the run limit its task is cancelled."""
    PROCESS = "process"
    """In a process of its own, killed hard at the run limit."""


class SecretResult(TypedDict, total=False):
    """What may be declared of a secret result field. opens_in: argument fields, each ``tool.field``."""

    opens_in: list[str] | tuple[str, ...]


class ToolOptions(TypedDict, total=False):
    """What may be declared of a tool; times are seconds, each at least a millisecond."""

    name: str
    """1 to 64 letters, digits, ``_``, ``.`` or ``-``; by default the function's name."""
    description: str
    """What the model is told the tool does; by default the function's docstring."""
    schema: dict[str, Any]
    """JSON Schema 2020-12 in place of the signature's; its patterns are ECMA-262, without look-around, backreferences
    and counts above 1000."""
    effect: Effect | Literal["read", "idempotent", "mutating"]
    """What running it twice does; ``mutating`` by default."""
    timeout: float | None
    """Run limit of one attempt (20 s), None for none."""
    concurrency: int | None
    """Most calls at once over all workers; None, the default, for no limit."""
    rate: str | None
    """How many of its calls may start in a time, over all workers: ``100/min``, with s, min, h or d. None, the default,
    for no rate."""
    retry: Retry | int | stop_base | wait_base
    """How often and after which waits an attempt that may be repeated is."""
    deadline: float
    """How long a call may wait and be retried, from its first queueing on (600 s)."""
    queue: str
    """The queue that its calls wait in; ``default`` by default."""
    order_by: str | tuple[str, ...]
    """Argument names whose equal values make calls run one by one."""
    after: str | tuple[str, ...]
    """Tools whose calls of the same turn must succeed first: those before it in its submission, and those stored
    already; so submit a turn whole, or in call order."""
    approval: Literal["never", "always", "hook"]
    """Whether a person must approve a call. ``hook``: the registry's authorize hook decides; a worker without one does
    not start."""
    approval_lifetime: float
    """How long a call waits for its approval (86,400 s)."""
    secret: str | tuple[str, ...]
    """Argument fields that are stored encrypted."""
    secret_result: str | tuple[str, ...] | dict[str, SecretResult]
    """Result fields that are stored encrypted. A sealed value is opened again only in argument fields that it names:
    ``secret_result={"token": {"opens_in": ["fetch.token"]}}``."""
    begins: bool
    """The handler says ``call.begin()`` before its effect; what ends before that may run again."""
    isolation: Isolation | Literal["thread", "async", "process"]
    """Where the handler runs; ``async`` for async functions, else ``thread``."""
    version: str
    """Of the tool's meaning; ``1`` by default."""
    accepts: str | tuple[str, ...]
    """Other versions whose calls may run here; all whose arguments fit the schema where it is left out."""
    not_started: tuple[type[BaseException], ...]
    """Exception types that mean the same as `NotStarted`."""
    rerun_absent: bool
    """Run again where the reconcile says that it did not happen. Two effects are possible where the lost attempt is
    still at work somewhere: its process paused, or its request on the way. So the reconcile is first asked when that
    process is known to be gone, or ten minutes after the call became unknown."""
    hold_duplicates: bool
    """Equal arguments under another call key wait for a person."""
    unique_by: str | tuple[str, ...]
    """Arguments that identify the effect, for example ``"order_id"``. Of several calls in which they are equal, one is
    the first: an equal call gets the outcome of the first, and one with other arguments is refused. The next one runs
    only where the first ended before it could have an effect: cancelled before it ran, ``ToolError(effect="none")``, a
    reconcile's `DidNotHappen`, an operator's word. Each is required, and a text, a number or a truth value."""
    unique_in: Literal["scope", "tenant"]
    """Whose calls are compared: those of one ``scope`` (the default) or of all scopes of a ``tenant``."""
    unique_for: float | str
    """For how long after the first call has ended, in seconds or as ``"30d"``; by default as long as its mark is
    kept."""
    result_limit: int
    """Bytes of a result that are stored."""
