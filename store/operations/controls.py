"""What people say about which calls may run now, set and cleared; and the reading of all of it, with its use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..model.controls import PAUSE_PREFIX, PAUSED, RESUMED, ControlKind, Controls, Setting, check_target, read_setting
from ..model.keys import Namespace
from ..model.rates import Rate
from .operation import Invocation, Query, invocation, number
from .operators import Actor
from .script_arguments import arguments_of


@arguments_of("control")
class ControlArgs(NamedTuple):
    kind: ControlKind
    target: str
    value: str
    actor: str
    reason: str


def control(space: Namespace, kind: ControlKind, target: str, value: str, by: Actor) -> Invocation[Setting | None]:
    """Set what a person says; "" clears it, and the code's word counts again. What is stored now.

    Calls that waited go on with the next sweep of a worker.

    Raises:
        ValueError: such a setting cannot be about this target, or the value has a space.
    """
    if " " in value:
        raise ValueError(f"{kind} {value!r}: a value is one word")
    args = ControlArgs(kind=kind, target=check_target(kind, target), value=value, actor=by.actor, reason=by.reason)
    return invocation(space.root, args, lambda reply: read_setting(reply.decode()) if reply else None)


def limit(space: Namespace, target: str, most: int | None, by: Actor) -> Invocation[Setting | None]:
    """Set the most calls at once, over all workers, of ``tool:<name>``, ``tenant:<name>`` or ``tenant:*``; None clears.

    Raises:
        ValueError: another target, or a negative number.
    """
    if most is not None and most < 0:
        raise ValueError(f"limit {most}: at least 0; None clears it")
    return control(space, ControlKind.LIMIT, target, "" if most is None else str(most), by)


def queue_limit(space: Namespace, target: str, most: int | None, by: Actor) -> Invocation[Setting | None]:
    """Set the most calls that wait, of ``queue:<name>``, ``tenant:<name>`` or ``tenant:*``, before new ones are
    refused. It wins over what harnesses were told; None clears it.

    Raises:
        ValueError: another target, or less than one call.
    """
    if most is not None and most < 1:
        raise ValueError(f"queue limit {most}: at least 1; None clears it")
    return control(space, ControlKind.QUEUE_LIMIT, target, "" if most is None else str(most), by)


def rate(space: Namespace, target: str, most: Rate | None, by: Actor) -> Invocation[Setting | None]:
    """Set how many calls of ``tool:<name>`` may start in a time; None clears it.

    Raises:
        ValueError: another target.
    """
    return control(space, ControlKind.RATE, target, most.stored if most else "", by)


def pause(space: Namespace, target: str, by: Actor) -> Invocation[Setting | None]:
    """Let no call of ``tool:<name>``, ``queue:<name>`` or ``tenant:<name>`` begin. What runs goes on.

    Calls stay queued, and their queue deadlines stand still. Paused again, it lasts since the first time.

    Raises:
        ValueError: another target.
    """
    return control(space, ControlKind.PAUSE, target, PAUSED, by)


def resume(space: Namespace, target: str, by: Actor) -> Invocation[Setting | None]:
    """End a pause. Parked calls come back with the next sweeps, the oldest first; None where nothing was ever paused.

    Raises:
        ValueError: another target.
    """
    return control(space, ControlKind.PAUSE, target, RESUMED, by)


def paused_queues(space: Namespace, queues: Sequence[str]) -> Query[frozenset[str]]:
    """Those of these queues that are paused, in one command."""

    def read(replies: Sequence[Any]) -> frozenset[str]:
        told = zip(queues, replies[0], strict=True)
        return frozenset(queue for queue, stored in told if stored and stored.startswith(f"{PAUSED} ".encode()))

    return Query([("HMGET", space.controls, *(f"{PAUSE_PREFIX}queue:{queue}" for queue in queues))], read)


class Paused(NamedTuple):
    """The queued calls that a pause is about, and those among them that are parked."""

    queued: int
    parked: int


def paused_calls(space: Namespace, targets: Sequence[str]) -> Query[dict[str, Paused]]:
    """The calls that wait because of the pause of each of these targets, also where it is over and they come back."""

    def counter(target: str) -> tuple[str, ...]:
        sort, _, name = target.partition(":")
        if sort == "queue":
            return ("ZCARD", space.pushed(name))
        return (
            ("HGET", space.counts, f"tool:queued:{name}") if sort == "tool" else ("HGET", space.queued_by_tenant, name)
        )

    def read(replies: Sequence[Any]) -> dict[str, Paused]:
        found = {}
        for target, queued, parked in zip(targets, replies[::2], replies[1::2], strict=True):
            is_of_queue = target.startswith("queue:")
            found[target] = Paused(number(queued) + (int(parked) if is_of_queue else 0), int(parked))
        return found

    counters = [(counter(target), ("ZCARD", space.waiting(f"{PAUSE_PREFIX}{target}"))) for target in targets]
    return Query([command for pair in counters for command in pair], read)


def controls(space: Namespace) -> Query[Controls]:
    """All settings, of people and of the code."""

    def read(replies: Sequence[Any]) -> Controls:
        flat = replies[0]
        pairs = flat.items() if isinstance(flat, Mapping) else zip(flat[::2], flat[1::2], strict=True)
        return Controls.from_stored({name.decode(): stored.decode() for name, stored in pairs})

    return Query([("HGETALL", space.controls)], read)


MOST_WAITED_FOR = 200


def limits_waited_for(space: Namespace) -> Query[tuple[str, ...]]:
    """Limits that calls wait for, at most `MOST_WAITED_FOR` of them, sorted."""

    def read(replies: Sequence[Any]) -> tuple[str, ...]:
        return tuple(sorted(name.decode() for name in replies[0]))

    return Query([("SRANDMEMBER", space.saturated_limits, MOST_WAITED_FOR)], read)


def name_of(kind: ControlKind, target: str) -> str:
    """The name under which calls wait for it: ``tool:pay`` for a limit, ``rate:tool:pay``, ``pause tool:pay``."""
    return {ControlKind.LIMIT: "", ControlKind.RATE: "rate:"}.get(kind, f"{kind} ") + target


class Use(NamedTuple):
    """Calls that hold a slot of a limit, and calls that wait for it, or for a rate or a pause."""

    running: int
    waiting: int


def uses(space: Namespace, limits: Sequence[str]) -> Query[dict[str, Use]]:
    """How far each of these limits, rates and pauses, by `name_of`, is used."""
    commands = [command for one in limits for command in (("SCARD", space.slots(one)), ("ZCARD", space.waiting(one)))]

    def read(replies: Sequence[Any]) -> dict[str, Use]:
        pairs = zip(replies[::2], replies[1::2], strict=True)
        return {one: Use(int(running), int(waiting)) for one, (running, waiting) in zip(limits, pairs, strict=True)}

    return Query(commands, read)
