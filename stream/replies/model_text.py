"""The text for the model about a call without a result: what happened, what did not, and what to do next.

Decides texts only. Each one says whether anything was executed, since the model's next step depends on it. The text of
an unknown call forbids to claim success and to call again. Must not know providers and wire formats.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...store.model.outcomes import Failure, Outcome
from ...store.model.states import State

_STATE_WORDS = frozenset(state.value for state in State)
_NOTHING_RAN = "Nothing was executed."
_CORRECT = "Correct the arguments and call it again."
_GIVE_UP = "This was the second time or later. Do not call it again for now; say that it was not done."

# Code of a refusal -> (what happened, what to do). `{tool}` is the tool's name.
_REFUSALS: dict[str, tuple[str, str]] = {
    "invalid_arguments": (f"The arguments for {{tool}} were not accepted. {_NOTHING_RAN}", _CORRECT),
    "invalid_json": (f"The arguments for {{tool}} were not valid JSON. {_NOTHING_RAN}", _CORRECT),
    "not_an_object": (f"The arguments for {{tool}} were not a JSON object. {_NOTHING_RAN}", _CORRECT),
    "duplicate_key": (f"The arguments for {{tool}} name one member twice. {_NOTHING_RAN}", _CORRECT),
    "non_finite": (f"The arguments for {{tool}} hold a number that is not finite. {_NOTHING_RAN}", _CORRECT),
    "lone_surrogate": (f"The arguments for {{tool}} hold a lone surrogate. {_NOTHING_RAN}", _CORRECT),
    "too_deep": (f"The arguments for {{tool}} are nested too deeply. {_NOTHING_RAN}", _CORRECT),
    "too_large": (f"The arguments for {{tool}} are too large. {_NOTHING_RAN}", _CORRECT),
    "too_costly": (
        f"The arguments for {{tool}} are too large, or nested too deeply, to be checked. {_NOTHING_RAN}",
        "Call it again with less at once.",
    ),
    "unknown_tool": (
        f"There is no tool named {{tool}}. {_NOTHING_RAN}",
        "Use only the tools that are offered, by their exact names.",
    ),
    "denied": (
        f"The call of {{tool}} was denied. {_NOTHING_RAN}",
        "Do not call it again unless you are asked to; say that it was not done.",
    ),
    "predecessor": (
        f"{{tool}} was not run, because the call it had to follow did not succeed. {_NOTHING_RAN}",
        "Look at the result of that call first; make a new call if this one is still wanted.",
    ),
}

# Code of a failure that is known to have had no effect -> the same; see `Failure.effect`.
_UNTOUCHED: dict[str, tuple[str, str]] = {
    "not_entered": (
        f"{{tool}} was not run: its worker lost the right to run it before it started. {_NOTHING_RAN}",
        "Say that it was not done. Call it again only if it is still wanted.",
    ),
    "cancelled": (
        f"{{tool}} was stopped on request before its effect could start. {_NOTHING_RAN}",
        "Do not call it again unless you are asked to; say that it was not done.",
    ),
    "attempts_exhausted": (
        f"{{tool}} could not start on any attempt it was allowed. {_NOTHING_RAN}",
        "Say that it was not done. Calling it again now will probably fail as well.",
    ),
    "deadline_exceeded": (
        f"{{tool}} could not start before its deadline. {_NOTHING_RAN}",
        "Say that it was not done. Call it again only if it is still wanted.",
    ),
}
_UNTOUCHED_ELSE = (
    f"{{tool}} failed before its effect could start. {_NOTHING_RAN}",
    "Say that it was not done. Call it again only with a change that removes the cause.",
)

# Code of a failure -> the same. A tool chooses its own codes, so none of these may say that nothing was executed.
_FAILURES: dict[str, tuple[str, str]] = {
    "deadline_exceeded": (
        "{tool} did not succeed before its deadline.",
        "Say that it failed. Call it again only if it is still wanted.",
    ),
    "attempts_exhausted": (
        "{tool} failed on every attempt it was allowed.",
        "Say that it failed. Calling it again now will probably fail as well.",
    ),
    "cancelled": (
        "{tool} was cancelled before it had a result.",
        "Do not say that it succeeded. Do not call it again unless you are asked to.",
    ),
    "did_not_happen": (
        "{tool} was started, and a check has shown that it took no effect.",
        "Say that it was not done. Call it again only if it is still wanted.",
    ),
    "purged": (
        "It is not known whether {tool} took effect, and nobody is looking into it any more.",
        "Do not say that it succeeded, and do not say that it failed. Do not call it again unless you are asked to: "
        "that could repeat the effect.",
    ),
}

# State -> the same, for codes that are not listed above.
_STATES: dict[State, tuple[str, str]] = {
    State.FAILED: (
        "{tool} failed.",
        "Do not say that it succeeded. Call it again only with a change that removes the cause.",
    ),
    State.REFUSED: (
        f"The call of {{tool}} was refused. {_NOTHING_RAN}",
        "Do not repeat the same call; say that it was not done.",
    ),
    State.CANCELLED: (
        f"The call of {{tool}} was cancelled before it started. {_NOTHING_RAN}",
        "Do not call it again unless you are asked to; say that it was not done.",
    ),
    State.EXPIRED: (
        f"The call of {{tool}} expired before it started: its time ran out. {_NOTHING_RAN}",
        "Say that it was not done. Call it again only if it is still wanted.",
    ),
    State.UNKNOWN: (
        "{tool} was started, and it is not known whether it took effect.",
        "Do not say that it succeeded, and do not say that it failed. Do not call it again: that could repeat the "
        "effect. Say that the outcome is unconfirmed and being looked into.",
    ),
}

# State -> the same, where an attempt was made before: these end a call while nothing runs, and know no more than that.
_TRIED_ADVICE = (
    "Do not say that it succeeded, and do not say that nothing was done. Do not call it again unless you are asked to: "
    "that could repeat the effect."
)
_TRIED: dict[State, tuple[str, str]] = {
    State.REFUSED: ("{tool} was refused another attempt. One before may have had its effect.", _TRIED_ADVICE),
    State.CANCELLED: (
        "{tool} was cancelled while it waited for another attempt. One before may have had its effect.",
        _TRIED_ADVICE,
    ),
    State.EXPIRED: (
        "{tool} expired while it waited for another attempt. One before may have had its effect.",
        _TRIED_ADVICE,
    ),
}

# The same, where the attempt was lost together with its record when the store lost writes.
_MAY_HAVE_RUN = "It may have run before: records of that time were lost."

_CONFLICT = "This call of {tool} has the {named} of an earlier call with another tool or other arguments."
_STANDS = "The earlier call stands. Make a new call if this one is wanted as well"
_OVER = "The earlier call is over, and this one will never run under its {named}: make a new call if it is still wanted"
_OPEN = (
    "The earlier call is not finished: do not say that it succeeded or that it failed. "
    "Make a new call only if this one is wanted as well"
)
# How a new call can be made, by what identified this one: its turn and call id, or an intent key of the harness.
_NAMED = {"turn": ("identity", ", in a new turn."), "intent": ("intent key", ", under another intent key.")}

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
    code = outcome.failure.code if outcome.failure else str(outcome.state)
    known = outcome.state is not State.UNKNOWN
    head = f"Error [{code}]" if known else "Error [unknown]"
    return _join(head, outcome, _failure_words(outcome, code), outcome.failure)


def _conflict(outcome: Outcome) -> str:
    """The text for a conflict: what identified this call, that it was not run, the earlier call's state, and advice."""
    details = outcome.failure.details if outcome.failure else {}
    named, new = _NAMED["intent" if details.get("named_by") == "intent" else "turn"]
    head = f"Error [conflict]: {_CONFLICT.format(tool=f'`{outcome.tool}`', named=named)} {_NOTHING_RAN}"
    first = _first_call(details.get("first"))
    if first is None:
        return f"{head}\n{_STANDS}{new}"
    if first.state is State.SUCCEEDED:
        told, advice = ("{tool} succeeded.", ""), _STANDS + new
    elif first.pending:
        told, advice = (_pending(first), ""), _OPEN + new
    else:
        told = _failure_words(first, first.failure.code if first.failure else str(first.state))
        in_doubt = first.state is State.UNKNOWN or first.was_tried or (first.failure and first.failure.code == "purged")
        advice = told[1] if in_doubt else _OVER.format(named=named) + new
    return "\n".join([head, _join("The earlier call", first, (told[0], ""), first.failure), advice])


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
    reason = outcome.marks.get("reason", "")
    if outcome.state is State.QUEUED and reason == "paused":
        return _PAUSED
    held = _HELD.get(reason) if outcome.state is State.HELD else None
    return held or _PENDING[outcome.state if isinstance(outcome.state, State) else None]


def is_error(outcome: Outcome) -> bool:
    """Whether the answer needs the provider's error flag: not for a result, and not for a call that is still open."""
    return outcome.conflict or not (outcome.state is State.SUCCEEDED or outcome.pending) or _unadmitted(outcome)


def _unadmitted(outcome: Outcome) -> bool:
    return outcome.state is None and outcome.failure is not None


def _failure_words(outcome: Outcome, code: str) -> tuple[str, str]:
    state = outcome.state if isinstance(outcome.state, State) else State.REFUSED
    if state is State.FAILED and outcome.nothing_ran:
        return _UNTOUCHED.get(code, _UNTOUCHED_ELSE)
    if outcome.was_tried and outcome.attempt > 0:
        return _TRIED[state]
    codes = {State.REFUSED: _REFUSALS, State.FAILED: _FAILURES}.get(state, {})
    happened, advice = codes.get(code, _STATES[state])
    if outcome.may_have_run and _NOTHING_RAN in happened:
        return happened.replace(_NOTHING_RAN, _MAY_HAVE_RUN), _TRIED_ADVICE
    return happened, _GIVE_UP if outcome.has_repeated_argument_error else advice


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
