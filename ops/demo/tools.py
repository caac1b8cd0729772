"""The tools of the demo: one that reads, one that is idempotent, and some that change the world.

Their effects are lines of a ledger. They take a little time, so that eyes can follow.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from ...worker.tools.call import Call
from ...worker.tools.errors import BadTool
from ...worker.tools.registry import Registry
from ...worker.tools.tool import Tool
from .ledger import Ledger

WORK_SECONDS = 0.2
SLOW_BANK_SECONDS = 60.0
"""Longer than the demo: the bank's answer never comes, because the worker is killed first."""


def demo_tools(ledger: Ledger, *, echo: Iterable[str] = ()) -> Registry:
    """A registry over this ledger: the tools of the story, or `echo` ones that take anything and answer with it."""
    tools = Registry()
    for name in echo:
        with suppress(BadTool):  # a name that no tool can have: its calls are refused, which is right
            tools.add(_echo(name, ledger))
    if not len(tools):
        _add_harmless(tools, ledger)
        _add_mutating(tools, ledger)
    return tools


def _add_harmless(tools: Registry, ledger: Ledger) -> None:
    @tools.tool(effect="read")
    def get_weather(city: str) -> dict[str, Any]:
        """Say how the weather is; the same city always gets the same answer."""
        time.sleep(WORK_SECONDS)
        return {"city": city, "degrees": zlib.crc32(city.encode()) % 30, "sky": "clear"}

    @tools.tool(effect="idempotent")
    def save_note(title: str, text: str, *, call: Call) -> dict[str, Any]:
        """Keep a note; the notebook knows the idempotency key, so that twice is once."""
        time.sleep(WORK_SECONDS)
        ledger.enter_once(call.idempotency_key, "save_note", f"{title}: {text}")
        return {"saved": title}


def _add_mutating(tools: Registry, ledger: Ledger) -> None:
    @tools.tool(effect="mutating")
    def create_invoice(customer: str, cents: int, reference: int = 0, *, call: Call) -> dict[str, Any]:
        """Write an invoice."""
        time.sleep(WORK_SECONDS)
        ledger.enter(call.idempotency_key, "create_invoice", f"{customer}: {cents}")
        return {"invoice": f"INV-{call.fence}", "cents": cents, "reference": reference}

    @tools.tool(effect="mutating", order_by=("to",))
    def send_mail(to: str, subject: str, *, call: Call) -> dict[str, Any]:
        """Send a mail; mails to one person go in order."""
        time.sleep(WORK_SECONDS)
        ledger.enter(call.idempotency_key, "send_mail", f"{to}: {subject}")
        return {"sent": True}

    @tools.tool(effect="mutating", timeout=SLOW_BANK_SECONDS * 2)
    def pay_supplier(supplier: str, cents: int, *, call: Call) -> dict[str, Any]:
        """Pay: the money is gone at once, the bank's answer takes long. Nothing can be asked of this bank later."""
        ledger.enter(call.idempotency_key, "pay_supplier", f"{supplier}: {cents}")
        time.sleep(SLOW_BANK_SECONDS)
        return {"paid": cents}


def _echo(name: str, ledger: Ledger) -> Tool:
    def answer(*, call: Call, **arguments: Any) -> dict[str, Any]:
        ledger.enter(call.idempotency_key, name, "")
        return {"echo": arguments}

    return Tool(answer, {"name": name, "schema": {"type": "object"}, "description": "Made up for the demo."})
