"""Outcomes of a turn for people and programs, and the exit code for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...store.model.outcomes import Outcome
from ...store.model.sealing import mask
from ..exit_codes import ExitCode
from . import render
from .render import SHOWN_DIGITS


def as_json(outcome: Outcome) -> dict[str, Any]:
    """One outcome as JSON; see `Outcome.to_json`. Sealed values are ``***``."""
    form = outcome.to_json()
    return form | {"result": mask(form["result"])} if "result" in form else form


def answer(outcome: Outcome) -> str:
    """The result or error of a call in one short line."""
    if outcome.has_value:
        return render.brief(render.json_line(mask(outcome.value)))
    if outcome.failure:
        return render.brief(f"{outcome.failure.code}: {outcome.failure.message}", 90)
    return str(outcome.marks.get("reason", ""))


def show(outcomes: Sequence[Outcome]) -> None:
    """Print outcomes as a table in call order."""
    rows = (
        (
            outcome.key[:SHOWN_DIGITS],
            outcome.tool,
            render.state(outcome.word),
            "replayed" if outcome.replayed else "",
            answer(outcome),
        )
        for outcome in outcomes
    )
    render.show_table(("call", "tool", "state", "", "answer"), rows)


def exit_code(outcomes: Sequence[Outcome], *, waited: bool) -> ExitCode:
    """DONE where every call succeeded. An open call counts as not succeeded only where the command has waited."""
    bad = any(not outcome.has_value and (waited or not outcome.pending) for outcome in outcomes)
    return ExitCode.ENDED_BADLY if bad else ExitCode.DONE
