"""A tool whose calls share a unique key, and which ends as a test's plan says: one word for each entry, in their order.

A plan is a file beside the ledger: ``plan-<order>``. Entries and effects are lines of the ledger; an entry waits for
the gate of its order.
"""

from __future__ import annotations

from tests.support.processes.tools_under_test import EffectsFile, effect, pass_gate
from toolonce.worker import Call, Registry, ToolError

TOOLS = "tests.support.processes.unique_tools:tools"
tools = Registry()


def plan(ledger: EffectsFile, order: str, *words: str) -> None:
    """What each entry for this order does: ``succeed`` (also what comes later), ``no_effect``, ``fail``, ``doubt``."""
    (ledger.path.parent / f"plan-{order}").write_text("\n".join(words))


def _bill(order: str, cents: int = 5, *, call: Call) -> str:
    ledger = EffectsFile(EffectsFile.current())
    entry = ledger.count(f"entered {order} ")
    effect(f"entered {order} {call.key}")
    pass_gate(order)
    file = ledger.path.parent / f"plan-{order}"
    words = file.read_text().splitlines() if file.exists() else []
    what = words[entry] if entry < len(words) else "succeed"
    if what == "no_effect":
        raise ToolError("no such account", effect="none")
    effect(f"billed {order} {call.key}")
    if what == "fail":
        raise ToolError("the receipt could not be printed")
    if what == "doubt":
        raise ConnectionResetError("no answer")
    return f"receipt {order} {cents}"


tools.tool(name="bill", effect="mutating", unique_by="order", timeout=None)(_bill)
tools.tool(name="bill_in_tenant", effect="mutating", unique_by="order", unique_in="tenant", timeout=None)(_bill)
