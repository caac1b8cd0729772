"""Checks a registry before it is used: what may run in parallel, what would overrun a limit, what no reconcile could
settle. Pure: specs and tools in, findings out; `toolonce tools check` shows them.

Whether two calls of a tool may run at once is `ToolSpec.parallel_safe`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from types import CodeType, FunctionType
from typing import Any

from ...store.model.rates import Rate
from ...store.model.specs import Effect, ToolSpec
from ...store.schema.validation import find_multiplying_choice
from .authorize import Rules
from .registry import rules_of
from .tool import Tool

DAY_MS = 86_400_000
DEFAULT_FANOUT = 10
"""Calls of one tool in one turn that models do ask for."""


@dataclass(frozen=True, slots=True)
class ToolFinding:
    """One thing to know about a tool; `level` is ``ok``, ``note`` or ``risk``."""

    tool: str
    level: str
    text: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the audit says of one tool.

    Attributes:
        parallel_safe: two of its calls may run at once.
        needs_order: parallel calls must be forbidden or ordered by the harness.
        forwards_key: the handler mentions the idempotency key or the fence, so downstream can refuse a repeat.
    """

    spec: ToolSpec
    parallel_safe: bool
    needs_order: bool
    forwards_key: bool
    findings: tuple[ToolFinding, ...]

    @property
    def is_risky(self) -> bool:
        return any(finding.level == "risk" for finding in self.findings)


def audit(tools: Iterable[Tool], *, fanout: int = DEFAULT_FANOUT) -> tuple[Verdict, ...]:
    """Check each tool, in order of registration.

    Args:
        fanout: calls of one tool that one turn may hold.
    """
    listed = tuple(tools)
    names = {tool.name for tool in listed}
    return tuple(_judge(tool, names, fanout, rules_of(tool, tools)) for tool in listed)


def forbids_parallel_calls(verdicts: Iterable[Verdict]) -> bool:
    """Whether a harness should ask the provider for one call per turn."""
    return any(verdict.needs_order for verdict in verdicts)


def to_json(verdicts: Iterable[Verdict]) -> str:
    """The registry as JSON, each tool with its ``parallel_safe`` flag."""
    rows: list[dict[str, Any]] = [
        asdict(verdict.spec) | {"parallel_safe": verdict.parallel_safe, "forwards_key": verdict.forwards_key}
        for verdict in verdicts
    ]
    return json.dumps({"tools": rows}, indent=2, ensure_ascii=False)


def _judge(tool: Tool, names: set[str], fanout: int, rules: Rules) -> Verdict:
    spec = tool.spec
    safe = spec.parallel_safe
    forwards = _mentions(tool.handler, {"idempotency_key", "fence"})
    findings = (
        *_parallel(spec, safe=safe), *_limits(spec, fanout), *_cost(tool), *_clearing(tool, forwards=forwards),
        *_unique(spec),
    )  # fmt: skip
    unknown = [name for name in spec.after if name not in names]
    if unknown:
        findings += (ToolFinding(spec.name, "risk", f"comes after {', '.join(unknown)}, which this registry lacks"),)
    if rules.lack_a_hook:
        findings += (
            ToolFinding(spec.name, "risk", "leaves its approval to a hook, and there is none: no worker starts"),
        )
    return Verdict(spec, safe, not safe, forwards, findings or (ToolFinding(spec.name, "ok", "nothing to say"),))


def _parallel(spec: ToolSpec, *, safe: bool) -> tuple[ToolFinding, ...]:
    if safe:
        return ()
    text = "changes things and may run in parallel with itself: declare order_by, or concurrency=1"
    return (ToolFinding(spec.name, "note", text),)


def _limits(spec: ToolSpec, fanout: int) -> tuple[ToolFinding, ...]:
    """Calls that wait for others of their turn do so within the queue deadline."""
    rounds = -(-fanout // spec.concurrency) if spec.concurrency else 1
    if spec.order_by:
        rounds = fanout  # all of them may touch the same thing
    if not spec.timeout_ms:
        return (ToolFinding(spec.name, "note", "has no run limit: a hung handler holds its slot forever"),)
    starts_ms = (fanout - 1) * 1000 / Rate.parse(spec.rate).per_second if spec.rate else 0
    last_ms = max((rounds - 1) * spec.timeout_ms, round(starts_ms))
    if last_ms > spec.deadline_ms:
        last = f"{last_ms / 1000:g} s"
        text = (
            f"{fanout} calls of one turn: the last may wait {last}, past its deadline of {spec.deadline_ms / 1000:g} s"
        )
        return (ToolFinding(spec.name, "risk", text),)
    return ()


def _cost(tool: Tool) -> tuple[ToolFinding, ...]:
    """Patterns without a bound, and references without an end, are refused at registration already."""
    keyword = find_multiplying_choice(tool.spec.schema)
    if keyword is None and tool.signature.ways < 2:
        return ()
    text = (
        f"its arguments hold choices ({keyword or 'unions'}) that lead back to themselves: each level multiplies the "
        "cost of validation; deeply nested arguments are refused as too_costly; choose by a tag, or not inside again"
    )
    return (ToolFinding(tool.name, "note", text),)


def _unique(spec: ToolSpec) -> tuple[ToolFinding, ...]:
    """What its unique key means, and what could keep it taken."""
    if not spec.unique_by:
        return ()
    members, unit = ", ".join(spec.unique_by), "a tenant" if spec.unique_in == "tenant" else "a scope"
    if spec.effect is Effect.READ:
        return (ToolFinding(spec.name, "note", f"only reads: unique_by answers the same {members} with an old result"),)
    days, rest = divmod(spec.unique_for_ms, DAY_MS)
    span = f"{spec.unique_for_ms / 1000:g} s" if rest else f"{days} days"
    lasts = f"for {span} after it" if spec.unique_for_ms else "for as long as its mark is kept"
    text = f"one effect for each {members} of {unit}, {lasts}; a failed call keeps it, but for ToolError(effect='none')"
    return (ToolFinding(spec.name, "note", text),)


def _clearing(tool: Tool, *, forwards: bool) -> tuple[ToolFinding, ...]:
    """A mutating call may become unknown; who could tell then what happened?"""
    if tool.spec.rerun_absent:
        return (_rerunning(tool, forwards=forwards),)
    if tool.spec.effect is Effect.READ or tool.reconciler:
        return ()
    if tool.spec.effect is Effect.IDEMPOTENT and not forwards:
        text = "is called idempotent, but its handler mentions no idempotency key; is it so by nature?"
        return (ToolFinding(tool.name, "note", text),)
    if tool.spec.effect is Effect.MUTATING and not forwards:
        text = "has neither a reconcile nor a key that downstream sees: an unknown call needs a person"
        return (ToolFinding(tool.name, "risk", text),)
    return ()


def _rerunning(tool: Tool, *, forwards: bool) -> ToolFinding:
    if not tool.reconciler:
        return ToolFinding(tool.name, "risk", "says rerun_absent and has no reconcile that could find nothing")
    text = "runs again what its reconcile does not find: a paused attempt that goes on later is a second effect"
    return ToolFinding(
        tool.name, "note" if forwards else "risk", text if forwards else f"{text}; forward the key or the fence"
    )


def _mentions(handler: Any, words: set[str]) -> bool:
    """Whether the handler's own code, inner functions included, uses one of these attributes."""
    return isinstance(handler, FunctionType) and _names(handler.__code__, words)


def _names(code: CodeType, words: set[str]) -> bool:
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return bool(words & set(code.co_names)) or any(_names(part, words) for part in inner)
