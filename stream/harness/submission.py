"""A submission: decides the identities of the calls of a turn, and the store operations that admit them.

Sans-IO: a generator yields store operations and is sent their answers, so that the blocking and the async client share
one set of rules. Stored calls are replayed and need no tool spec; new calls are validated and admitted, all of a turn
in one step. Where the turn is new to the client, that step finds out which calls are stored already.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from redis.exceptions import ResponseError

from ...store.crashpoints import reach
from ...store.model import identity
from ...store.model.errors import (
    KeyringMissing,
    StoreError,
    StoreMisuse,
    StoreUnavailable,
    TurnIdMissing,
)
from ...store.model.keyring import Keyring
from ...store.model.keys import Namespace
from ...store.model.outcomes import Outcome
from ...store.model.specs import Published
from ...store.operations.admission import Identified, InboxEntry, Request, Turn, admit, lookup
from ...store.operations.fence_watermark import FenceWatermark
from ...store.operations.operation import Operation
from ...store.schema.validation import Heavy
from ..turns.turn import RejectedCall, ToolCall, TurnResult
from ..wire.arguments import encodable
from .admission_rules import AdmissionRules, RequestedCall
from .published_tools import nothing_published
from .queue_limits import DEFAULTS
from .submission_cache import SubmissionCache
from .telemetry import log_answers, traceparent

_MOST_VALIDATIONS = 50
"""Most validations of one submission while the specs keep changing; each needs one or two round trips."""
# Some servers choose "chatcmpl-<0..999>" at random (Ollama). Such an id repeats within a day.
_RECURRING = re.compile(r"chatcmpl-\d{1,3}\Z")

Intent = str | Mapping[int, str] | None
"""Intent keys: one key for a turn of one call, or position -> key. See `identified`."""
Step = Operation[Any] | Heavy
"""A step of a submission, which its driver runs: a store operation, or a validation that may take seconds."""


@dataclass(frozen=True, slots=True)
class SubmissionTerms:
    """The owner of calls, and the rules under which they are stored.

    Attributes:
        scope: the tenant and conversation in which turn ids are unique; from the harness, never from the model.
        tenant: the tenant whose limits count; by default the scope up to the first ``/``.
        queue_limit, tenant_queue_limit: see `queue_limits`.
        trace: a W3C traceparent that the worker continues; "" for none.
        place: the store's address, for messages.
        watermark: the highest fence that this harness has seen in answers of the namespace.

    Raises:
        StoreMisuse: scope or tenant is not valid UTF-8.
    """

    space: Namespace
    scope: str
    tenant: str = ""
    keyring: Keyring = field(default_factory=Keyring)
    queue_limit: int = DEFAULTS["queue_limit"]
    tenant_queue_limit: int = DEFAULTS["tenant_queue_limit"]
    trace: str = ""
    place: str = ""
    watermark: FenceWatermark = field(default_factory=FenceWatermark, compare=False)

    def __post_init__(self) -> None:
        _require_utf8("scope", self.scope)
        _require_utf8("tenant", self.tenant)

    def turn(self, turn_id: str) -> Turn:
        tenant = self.tenant or self.scope.partition("/")[0]
        return Turn(self.scope, turn_id, identity.turn_key(self.space.name, self.scope, turn_id), tenant)


def usable_turn_id(given: str | None, came: str | None) -> str:
    """The turn id: the harness's own, else the provider's where it is unique.

    Raises:
        TurnIdMissing: there is none, or one that repeats within days.
        StoreMisuse: the given one is not valid UTF-8.
    """
    if given and given.strip():
        _require_utf8("turn id", given)
        return given
    if not came or not came.strip():
        raise TurnIdMissing("the turn has no id; give turn_id, your own step id, the same on every retry")
    if _RECURRING.match(came):
        raise TurnIdMissing(
            f"the server chooses turn ids like {came!r} from 1000 values; give turn_id, your own step id"
        )
    return came


def _require_utf8(what: str, text: str) -> None:
    if not isinstance(text, str):
        raise StoreMisuse(f"the {what} is a text, not {type(text).__name__}")
    if not encodable(text):  # else it would fail at the socket with a useless message
        raise StoreMisuse(f"the {what} {text!r} is not valid UTF-8 and cannot be stored")


def asked_of(result: TurnResult) -> list[RequestedCall]:
    """The calls of a completed turn in call order, refused ones included.

    Raises:
        TypeError: it is not a `TurnResult`; drafts never run.
        TurnError: the turn is not completed.
    """
    if not isinstance(result, TurnResult):
        raise TypeError(f"submit takes the TurnResult of eof(), not {type(result).__name__}; drafts never run")
    ran = [(call.position, _decoded(call)) for call in result.require_calls()]
    refused = [(call.position, RequestedCall.refused(call)) for call in result.rejected]
    return [call for _, call in sorted((*ran, *refused), key=lambda placed: placed[0])]


def _decoded(call: ToolCall) -> RequestedCall:
    """A call from a decoder, which has checked its arguments already."""
    return RequestedCall(call.name, call.arguments, call.call_id, call.kind, echo=call.echo)


def asked(call: ToolCall | RejectedCall) -> RequestedCall:
    """A call that the caller built, checked here as a decoder would.

    Raises:
        TypeError: it is not a call.
    """
    match call:
        case ToolCall():
            return RequestedCall.held(call)
        case RejectedCall():
            return RequestedCall.refused(call)
        case _:
            raise TypeError(f"a call is a ToolCall or a RejectedCall, not {type(call).__name__}")


def identified(
    terms: SubmissionTerms, turn_id: str, calls: Sequence[RequestedCall], intent: Intent = None, occurrence: int = 1
) -> list[Identified]:
    """The identity of each call: from its turn and call id, or from the intent key that the harness gives.

    Raises:
        ValueError: an intent key belongs to no call, or to several; see `_intent_keys`.
    """
    keys = _intent_keys(intent, len(calls))
    namespace, scope = terms.space.name, terms.scope
    out = []
    for position, ref in enumerate(identity.references([call.call_id for call in calls], occurrence)):
        if position in keys:
            key = identity.intent_call_key(namespace, scope, keys[position])
        else:
            key = identity.call_key(namespace, scope, turn_id, ref)
        out.append(Identified(key, _fingerprints(terms.keyring, calls[position]), position in keys))
    return out


def _intent_keys(intent: Intent, calls: int) -> Mapping[int, str]:
    """Position -> intent key. A key for no call, or for two calls, would protect nothing and is refused."""
    if intent is None:
        return {}
    if isinstance(intent, str):
        if calls > 1:
            raise ValueError("one intent key for several calls; pass a mapping of position to key")
        intent = {0: intent} if calls else {}
    keys = intent
    if strange := [position for position in keys if position not in range(calls)]:
        raise ValueError(f"an intent key for position {strange[0]!r}: the turn has {calls} calls, counted from 0")
    if not all(isinstance(key, str) and key for key in keys.values()):
        raise ValueError("an intent key must be a non-empty string")
    if len(set(keys.values())) < len(keys):
        raise ValueError("two calls have one intent key: a key identifies one action")
    return keys


def _fingerprints(keyring: Keyring, call: RequestedCall) -> tuple[str, ...]:
    if call.rejected:
        return keyring.raw_fingerprints(call.tool, str(call.arguments))
    return keyring.fingerprints(call.tool, call.arguments)


@dataclass(frozen=True, slots=True)
class Submitting:
    """One submission; a driver runs its steps."""

    terms: SubmissionTerms
    turn_id: str
    calls: tuple[RequestedCall, ...]
    intent: Intent = None
    ordered: bool = False
    entry: InboxEntry | None = None
    came_clear: bool = False
    occurrence: int = 1

    def steps(self, cache: SubmissionCache) -> Generator[Step, Any, tuple[Outcome, ...]]:
        """Yield steps and take their answers; returns one outcome per call, in call order.

        Raises:
            NoToolsPublished: there are new calls, and no worker has published a tool.
            KeyringMissing: a tool has secret fields, and there are no keys.
            StoreFull: a limit is reached; nothing was stored.
            StoreUnavailable: the published specs kept changing; nothing was stored.
            StoreMisuse: a tool name or call id is not valid UTF-8; nothing was stored.
        """
        known = yield from self._answered(cache)
        self.terms.watermark.note_all(known)
        outcomes = _for_this_turn(known, self.calls)
        log_answers(self.terms.scope, self.turn_id, outcomes)
        return outcomes

    def _answered(self, cache: SubmissionCache) -> Generator[Step, Any, tuple[Outcome | None, ...]]:
        """What the store answers to each call. Stored calls are answered whatever the published specs say today."""
        found = identified(self.terms, self.turn_id, self.calls, self.intent, self.occurrence)
        if found and cache.is_new(self.terms.turn(self.turn_id).key) and cache.is_filled:
            try:
                return (yield from self._admit(found, [None] * len(found), cache))
            except StoreUnavailable:
                raise
            except (StoreError, ResponseError):
                pass  # a call that is stored already is answered all the same; for a new one this is said again
        known: tuple[Outcome | None, ...] = yield lookup(self.terms.space, found)
        if None in known or self.entry is not None or self._of_other_turns(found, known):
            known = yield from self._admit(found, known, cache)
        return known

    def _admit(
        self, found: Sequence[Identified], known: Sequence[Outcome | None], cache: SubmissionCache
    ) -> Generator[Step, Any, tuple[Outcome, ...]]:
        """Admit the unknown calls; they are validated again where the published specs change meanwhile."""
        is_new = None in known
        for call in self.calls:
            _require_utf8("tool name", call.tool)
            _require_utf8("call id", call.call_id or "")
        # An inbox entry gets answers for all its calls, stored ones included; admission leaves these unchanged.
        asks_again = self._of_other_turns(found, known)
        known = [None if call.key in asks_again else old for call, old in zip(found, known, strict=True)]
        wanted = [self.entry is not None or outcome is None for outcome in known]
        turn, request_id = self.terms.turn(self.turn_id), uuid.uuid4().hex
        for _ in range(_MOST_VALIDATIONS):
            are_old = cache.is_filled
            specs = yield from cache.get(self.terms.space)
            if not specs.tools and not specs.unreadable and is_new:
                raise nothing_published(self.terms.place or f"namespace {self.terms.space.name}")
            try:
                new = yield from self._rules(specs, turn).turn(self.calls, found, wanted)
            except KeyringMissing:
                if not are_old:
                    raise
                cache.forget()  # the current specs may need no keys
                continue
            limits = self.terms.queue_limit, self.terms.tenant_queue_limit
            request = Request(request_id, *limits, self.entry, specs.version, self.terms.watermark)
            reach("before_admit")
            admitted: tuple[Outcome, ...] | None = yield admit(self.terms.space, turn, new, request=request)
            reach("after_admit_reply_lost")  # a harness that dies here has not read the answer
            if admitted is not None:
                fresh = dict(zip((call.identity.key for call in new), admitted, strict=True))
                return tuple([outcome or fresh[call.key] for outcome, call in zip(known, found, strict=True)])
            cache.forget()
        raise StoreUnavailable("the published tools change faster than calls can be validated; try again")

    def _of_other_turns(self, found: Sequence[Identified], known: Sequence[Outcome | None]) -> set[str]:
        """The keys of calls that an intent key found in another turn; admission chooses their reply ids for this
        one."""
        pairs = zip(found, known, strict=True)
        return {call.key for call, old in pairs if old and call.by_intent and old.turn_id != self.turn_id}

    def _rules(self, specs: Published, turn: Turn) -> AdmissionRules:
        terms = self.terms
        return AdmissionRules(
            specs, terms.keyring, terms.scope, turn.key, turn.tenant,
            ordered=self.ordered, trace=terms.trace or traceparent(), came_clear=self.came_clear,
            namespace=terms.space.name,
        )  # fmt: skip


def _for_this_turn(outcomes: Iterable[Outcome | None], calls: Sequence[RequestedCall]) -> tuple[Outcome, ...]:
    """The outcomes with the names, ids and positions of this turn: a call that was found by its intent key is stored
    with those of an earlier one, and a conflict with the name of the earlier call."""
    found = [outcome for outcome in outcomes if outcome is not None]
    return tuple([_placed(outcome, calls[position], position) for position, outcome in enumerate(found)])


def _placed(outcome: Outcome, call: RequestedCall, position: int) -> Outcome:
    stored = (outcome.tool, outcome.call_id, outcome.position, outcome.kind)
    if stored == (call.tool, call.call_id, position, call.kind) and not outcome.echo and not call.echo:
        return outcome
    return replace(outcome, tool=call.tool, call_id=call.call_id, position=position, kind=call.kind, echo=call.echo)
