"""The text for the model about a call without a result: what happened, what did not, and what to do next.

Decides texts only. Each one says whether anything was executed, since the model's next step depends on it. The text of
an unknown call forbids to claim success and to call again. Must not know providers and wire formats.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ...store.model.outcomes import Failure, Outcome
from ...store.model.states import State
from .failure_words import NOTHING_RAN, STATES, failure_words

_STATE_WORDS = frozenset(state.value for state in State)
_CONFLICT = "This call of {tool} has the {named} of an earlier call with another tool or other arguments."
_STANDS = "The earlier call stands. Make a new call if this one is wanted as well"
_OVER = "The earlier call is over, and this one will never run under its {named}: make a new call if it is still wanted"
_OPEN = (
    "The earlier call is not finished: do not say that it succeeded or that it failed. "
    "Make a new call only if this one is wanted as well"
)
# How a new call can be made, by what identified this one: its turn and call id, or an intent key of the harness.
_NAMED = {"turn": ("identity", ", in a new turn."), "intent": ("intent key", ", under another intent key.")}

_TAKEN = "An earlier call of {tool} has the same {named} and other arguments."
_ONE_ONLY = (
    "Only one call is made for each {named}: do not call it again for this one; say that it was not done as asked."
)
_NOT_FINISHED = "The earlier call is not finished: do not say that it succeeded or that it failed."

_PENDING_ADVICE = (
    "It is not finished: do not say that it succeeded or that it failed. Do not call it again; it goes on by itself "
    "and its outcome will be reported separately."
)
_PENDING: dict[State | None, str] = {
    State.RUNNING: "{tool} is still running and has no result yet.",
    State.QUEUED: "{tool} is waiting for its turn to run and has no result yet.",
    State.HELD: "{tool} is held back and has no result yet.",
    None: "{tool} has no result yet.",
}
_PAUSED = "{tool} is paused by the people who run it. It waits until they resume it, and has no result yet."
_STOPPING = "{tool} was asked to stop; how it ends is not known yet."
_HELD: dict[str, str] = {
    "approval": "{tool} waits for a person's approval and has no result yet.",
    "order": "{tool} waits for an earlier call to finish and has no result yet.",
    "no_worker": "{tool} waits for a worker that serves it and has no result yet.",
    "store_went_back": "{tool} is held: records were lost, it may have run before, and a person has to compare.",
    "follows": "{tool} was called before with the same arguments. That call is not finished; its result is this one's.",
    "duplicate": "{tool} waits for a person's word on whether it repeats an earlier call, and has no result yet.",
}


def words(outcome: Outcome) -> str:
    """The text for a call without a result: a first line with the code, then facts and advice.

    Not for a succeeded call, whose answer is its result.
    """
    assert outcome.state is not State.SUCCEEDED or outcome.conflict, "a succeeded call has a result"
    if outcome.conflict:
        return _conflict(outcome)
    if outcome.pending and not (outcome.state is None and outcome.failure):
        return _join(f"Pending [{outcome.state or 'no_result'}]", outcome, (_pending(outcome), _PENDING_ADVICE), None)
    if outcome.follows_unknown:
        outcome = replace(outcome, state=State.UNKNOWN, failure=None)  # nothing else is known of this one
    code = outcome.failure.code if outcome.failure else str(outcome.state)
    if code == "unique_taken":
        return _unique_taken(outcome)
    known = outcome.state is not State.UNKNOWN
    head = f"Error [{code}]" if known else "Error [unknown]"
    return _join(head, outcome, failure_words(outcome, code), outcome.failure)


def _conflict(outcome: Outcome) -> str:
    """The text for a conflict: what identified this call, that it was not run, the earlier call's state, and advice."""
    details = outcome.failure.details if outcome.failure else {}
    named, new = _NAMED["intent" if details.get("named_by") == "intent" else "turn"]
    head = f"Error [conflict]: {_CONFLICT.format(tool=f'`{outcome.tool}`', named=named)} {NOTHING_RAN}"
    first = _first_call(details.get("first"))
    if first is None:
        return f"{head}\n{_STANDS}{new}"
    if first.state is State.SUCCEEDED:
        advice = _STANDS + new
    elif first.pending:
        advice = _OPEN + new
    else:
        told = failure_words(first, first.failure.code if first.failure else str(first.state))
        in_doubt = first.state is State.UNKNOWN or first.was_tried or (first.failure and first.failure.code == "purged")
        advice = told[1] if in_doubt else _OVER.format(named=named) + new
    return "\n".join([head, _join("The earlier call", first, (_standing(first), ""), first.failure), advice])


def _unique_taken(outcome: Outcome) -> str:
    """The text for a call whose unique key another one has: nothing was executed, the other's state, and advice."""
    details = outcome.failure.details if outcome.failure else {}
    named = str(details.get("unique_by", "values"))
    tool = f"`{outcome.tool}`"
    head = f"Error [unique_taken]: {_TAKEN.format(tool=tool, named=named)} {NOTHING_RAN}"
    first = _first_call(details.get("first"))
    if first is None:
        return f"{head}\n{_ONE_ONLY.format(named=named)}"
    told = _standing(first)
    in_doubt = first.state is State.UNKNOWN or first.was_tried or (first.failure and first.failure.code == "purged")
    advice = STATES[State.UNKNOWN][1] if in_doubt else _ONE_ONLY.format(named=named)
    if first.pending:
        advice = f"{_NOT_FINISHED} {advice}"
    return "\n".join([head, _join("The earlier call", first, (told, ""), first.failure), advice])


def _standing(first: Outcome) -> str:
    """The state of an earlier call."""
    if first.state is State.SUCCEEDED:
        return "{tool} succeeded."
    if first.pending:
        return _pending(first)
    return failure_words(first, first.failure.code if first.failure else str(first.state))[0]


def _first_call(told: Any) -> Outcome | None:
    """The earlier call, from the details of a conflict; see `store.outcomes.Failure`."""
    match told:
        case {"tool": str(tool), "state": str(state)} if state in _STATE_WORDS:
            marks = {name: told[name] for name in ("reason", "may_have_run") if name in told}
            error = Failure.of(told.get("error"))
            return Outcome(
                "", "", tool, None, 0, State(state), failure=error, attempt=told.get("attempt", 0), marks=marks
            )
        case _:
            return None


def _pending(outcome: Outcome) -> str:
    """The state of an open call."""
    if outcome.state is State.RUNNING and outcome.marks.get("cancel_requested"):
        return _STOPPING
    reason = "follows" if "follows" in outcome.marks else outcome.marks.get("reason", "")
    if outcome.state is State.QUEUED and reason == "paused":
        return _PAUSED
    held = _HELD.get(reason) if outcome.state is State.HELD else None
    return held or _PENDING[outcome.state if isinstance(outcome.state, State) else None]


def is_error(outcome: Outcome) -> bool:
    """Whether the answer needs the provider's error flag: not for a result, and not for a call that is still open."""
    return outcome.conflict or not (outcome.state is State.SUCCEEDED or outcome.pending) or _unadmitted(outcome)


def _unadmitted(outcome: Outcome) -> bool:
    return outcome.state is None and outcome.failure is not None


def _join(head: str, outcome: Outcome, told: tuple[str, str], failure: Failure | None) -> str:
    happened, advice = (text.format(tool=f"`{outcome.tool}`") for text in told)
    return "\n".join(filter(None, [f"{head}: {happened}", *(_facts(failure) if failure else ()), advice]))


def _facts(failure: Failure) -> Iterator[str]:
    """The places where the arguments violate the schema, where these are known; else the failure's message."""
    listed = failure.details.get("errors")
    places = [_place(error) for error in listed] if isinstance(listed, list) else []
    if places and all(places):
        yield from filter(None, places)
    elif failure.message:
        yield f"Reason: {failure.message}"


def _place(error: Any) -> str | None:
    """One place and what was expected there; None where ``errors`` in a tool's details has another form."""
    match error:
        case {"path": str(path), "expected": str(expected)}:
            return f"At {path}: {expected}"
        case _:
            return None
