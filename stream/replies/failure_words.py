"""The sentences about a call that has no result and is over, or unknown: what happened, and what to do next.

Tables by code and state. Each sentence says whether anything was executed, since the model's next step depends on it.
"""

from __future__ import annotations

from ...store.model.outcomes import Outcome
from ...store.model.states import State

NOTHING_RAN = "Nothing was executed."
_CORRECT = "Correct the arguments and call it again."
_GIVE_UP = "This was the second time or later. Do not call it again for now; say that it was not done."

# Code of a refusal -> (what happened, what to do). `{tool}` is the tool's name.
_REFUSALS: dict[str, tuple[str, str]] = {
    "invalid_arguments": (f"The arguments for {{tool}} were not accepted. {NOTHING_RAN}", _CORRECT),
    "invalid_json": (f"The arguments for {{tool}} were not valid JSON. {NOTHING_RAN}", _CORRECT),
    "not_an_object": (f"The arguments for {{tool}} were not a JSON object. {NOTHING_RAN}", _CORRECT),
    "duplicate_key": (f"The arguments for {{tool}} name one member twice. {NOTHING_RAN}", _CORRECT),
    "non_finite": (f"The arguments for {{tool}} hold a number that is not finite. {NOTHING_RAN}", _CORRECT),
    "lone_surrogate": (f"The arguments for {{tool}} hold a lone surrogate. {NOTHING_RAN}", _CORRECT),
    "too_deep": (f"The arguments for {{tool}} are nested too deeply. {NOTHING_RAN}", _CORRECT),
    "too_large": (f"The arguments for {{tool}} are too large. {NOTHING_RAN}", _CORRECT),
    "too_costly": (
        f"The arguments for {{tool}} are too large, or nested too deeply, to be checked. {NOTHING_RAN}",
        "Call it again with less at once.",
    ),
    "unknown_tool": (
        f"There is not a tool named {{tool}}. {NOTHING_RAN}",
        "Use only the tools that are offered, by their exact names.",
    ),
    "denied": (
        f"The call of {{tool}} was denied. {NOTHING_RAN}",
        "Do not call it again unless you are asked to; say that it was not done.",
    ),
    "predecessor": (
        f"{{tool}} was not run, because the call it had to follow did not succeed. {NOTHING_RAN}",
        "Look at the result of that call first; make a new call if this one is still wanted.",
    ),
}

# Code of a failure that is known to have had no effect -> the same; see `Failure.effect`.
_UNTOUCHED: dict[str, tuple[str, str]] = {
    "not_entered": (
        f"{{tool}} was not run: its worker lost the right to run it before it started. {NOTHING_RAN}",
        "Say that it was not done. Call it again only if it is still wanted.",
    ),
    "cancelled": (
        f"{{tool}} was stopped on request before its effect could start. {NOTHING_RAN}",
        "Do not call it again unless you are asked to; say that it was not done.",
    ),
    "attempts_exhausted": (
        f"{{tool}} could not start on any attempt it was allowed. {NOTHING_RAN}",
        "Say that it was not done. Calling it again now will probably fail as well.",
    ),
    "deadline_exceeded": (
        f"{{tool}} could not start before its deadline. {NOTHING_RAN}",
        "Say that it was not done. Call it again only if it is still wanted.",
    ),
}
_UNTOUCHED_ELSE = (
    f"{{tool}} failed before its effect could start. {NOTHING_RAN}",
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
STATES: dict[State, tuple[str, str]] = {
    State.FAILED: (
        "{tool} failed.",
        "Do not say that it succeeded. Call it again only with a change that removes the cause.",
    ),
    State.REFUSED: (
        f"The call of {{tool}} was refused. {NOTHING_RAN}",
        "Do not repeat the same call; say that it was not done.",
    ),
    State.CANCELLED: (
        f"The call of {{tool}} was cancelled before it started. {NOTHING_RAN}",
        "Do not call it again unless you are asked to; say that it was not done.",
    ),
    State.EXPIRED: (
        f"The call of {{tool}} expired before it started: its time ran out. {NOTHING_RAN}",
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

# The same, where an equal call came before: this one waited for the result of that one, which goes on.
_FOLLOWED = (
    "{tool} was called before with the same arguments. That call stands; this one was ended while it waited for its "
    "result, and was not executed itself.",
    "Do not say that it succeeded, and do not say that nothing was done: look at the result of the earlier call. "
    "Do not call it again unless you are asked to.",
)

# The same, where the attempt was lost together with its record when the store lost writes.
_MAY_HAVE_RUN = "It may have run before: records of that time were lost."


def failure_words(outcome: Outcome, code: str) -> tuple[str, str]:
    """What happened, and what to do; ``{tool}`` in both stands for the tool's name."""
    state = outcome.state if isinstance(outcome.state, State) else State.REFUSED
    if state is State.FAILED and outcome.nothing_ran:
        return _UNTOUCHED.get(code, _UNTOUCHED_ELSE)
    if "follows" in outcome.marks and state in _TRIED:
        return _FOLLOWED
    if outcome.was_tried and outcome.attempt > 0:
        return _TRIED[state]
    if state is State.FAILED and (first := outcome.marks.get("first_state")) in _TRIED:
        return _TRIED[State(first)]  # it follows a call that ended so, and shares its doubt
    codes = {State.REFUSED: _REFUSALS, State.FAILED: _FAILURES}.get(state, {})
    happened, advice = codes.get(code, STATES[state])
    if outcome.may_have_run and NOTHING_RAN in happened:
        return happened.replace(NOTHING_RAN, _MAY_HAVE_RUN), _TRIED_ADVICE
    return happened, _GIVE_UP if outcome.has_repeated_argument_error else advice
