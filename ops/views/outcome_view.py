"""Outcomes of a turn as people and programs see them, and what they mean for an exit code. Pure but for printing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...store.model.outcomes import Outcome
from ...store.model.sealing import mask
from ...store.model.states import State
from ..exit_codes import ExitCode
from . import render
from .render import SHOWN_DIGITS


def as_json(outcome: Outcome) -> dict[str, Any]:
    """One outcome for programs; `value` is there only where the call succeeded, so that null is a value."""
    view: dict[str, Any] = {
        "key": outcome.key,
        "idempotency_key": outcome.idempotency_key,
        "position": outcome.position,
        "call_id": outcome.call_id,
        "reply_id": outcome.reply_id,
        "tool": outcome.tool,
        "state": word(outcome),
        "replayed": outcome.replayed,
        "attempt": outcome.attempt,
    }
    if _has_value(outcome):
        view["value"] = mask(outcome.value)
    if outcome.failure:
        failure = outcome.failure
        view["error"] = {"code": failure.code, "message": failure.message, "details": failure.details}
    if outcome.marks:
        view["marks"] = outcome.marks
    return view


def word(outcome: Outcome) -> str:
    """The state, or ``conflict``, which is an answer and no state."""
    return "conflict" if outcome.conflict else str(outcome.state)


def answer(outcome: Outcome) -> str:
    """What came of the call, in one short line."""
    if _has_value(outcome):
        return render.brief(render.json_line(mask(outcome.value)))
    if outcome.failure:
        return render.brief(f"{outcome.failure.code}: {outcome.failure.message}", 90)
    return str(outcome.marks.get("reason", ""))


def show(outcomes: Sequence[Outcome]) -> None:
    """A table in call order."""
    rows = (
        (
            outcome.key[:SHOWN_DIGITS],
            outcome.tool,
            render.state(word(outcome)),
            "replayed" if outcome.replayed else "",
            answer(outcome),
        )
        for outcome in outcomes
    )
    render.show_table(("call", "tool", "state", "", "answer"), rows)


def exit_code(outcomes: Sequence[Outcome], *, waited: bool) -> ExitCode:
    """DONE where every call succeeded; one that is still open counts as bad only after someone waited for it."""
    bad = any(not _has_value(outcome) and (waited or not outcome.pending) for outcome in outcomes)
    return ExitCode.ENDED_BADLY if bad else ExitCode.DONE


def _has_value(outcome: Outcome) -> bool:
    return outcome.state is State.SUCCEEDED and not outcome.conflict
