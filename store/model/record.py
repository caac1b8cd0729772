"""The fields of a call's record, each declared once: type, writers, what absence means, and what forget takes.

Pure. The scripts get their lists of fields from here (`operations/operation.py` writes them as Lua), Python reads a
record through `RecordFields`, and ARCHITECTURE.md shows the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar, overload

T = TypeVar("T")


class Field(Generic[T]):
    """One field of the record, and how Python reads it.

    Attributes:
        kind: the type of what is stored: ``text``, ``json``, ``lines`` (texts, one a line), ``number``, ``time`` (ms of
            Redis time), ``fraction`` or ``flag`` ("1" where it is set).
        writers: the scripts and preludes that write it.
        absent: what it means that the field is not stored.
        is_secret: whether it may hold sealed values.
        is_kept: whether it stays in the tombstone when the call's body is forgotten.
    """

    def __init__(self, kind: str, read: Callable[[str | None], T], writers: str, absent: str, marks: str) -> None:
        self.name = ""
        self.kind = kind
        self.writers = tuple(writers.split())
        self.absent = absent
        self.is_secret = "secret" in marks.split()
        self.is_kept = "taken" not in marks.split()
        self._read = read

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, record: None, owner: type) -> Field[T]: ...
    @overload
    def __get__(self, record: RecordFields, owner: type) -> T: ...
    def __get__(self, record: RecordFields | None, owner: type) -> Field[T] | T:
        return self if record is None else self._read(record.values.get(self.name))


def _text(writers: str, absent: str = "never", marks: str = "") -> Field[str]:
    return Field("text", lambda stored: stored or "", writers, absent, marks)


def _optional(writers: str, absent: str, marks: str = "") -> Field[str | None]:
    return Field("text", lambda stored: stored, writers, absent, marks)


def _json(writers: str, absent: str, marks: str = "") -> Field[str]:
    return Field("json", lambda stored: stored or "", writers, absent, marks)


def _lines(writers: str, absent: str, marks: str = "") -> Field[tuple[str, ...]]:
    return Field("lines", lambda stored: tuple((stored or "").splitlines()), writers, absent, marks)


def _number(writers: str, absent: str = "never", marks: str = "") -> Field[int]:
    return Field("number", lambda stored: int(stored or 0), writers, absent, marks)


def _time(writers: str, absent: str, marks: str = "") -> Field[int | None]:
    return Field("time", lambda stored: int(stored) if stored else None, writers, absent, marks)


def _fraction(writers: str, absent: str, marks: str = "") -> Field[float | None]:
    return Field("fraction", lambda stored: float(stored) if stored else None, writers, absent, marks)


def _flag(writers: str, absent: str = "never", marks: str = "") -> Field[bool]:
    return Field("flag", lambda stored: stored == "1", writers, absent, marks)


class RecordFields:
    """The stored fields of one call, or those of them that were asked for; each attribute is one field, typed.

    Text and JSON are "" where the field is absent, numbers 0, flags False; times and what is marked optional are None.
    """

    __slots__ = ("values",)

    def __init__(self, values: Mapping[str, str]) -> None:
        self.values = values

    def __repr__(self) -> str:
        return f"RecordFields({dict(self.values)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RecordFields) and self.values == other.values

    __hash__ = None  # type: ignore[assignment]  # it is read only, but holds a mapping

    def typed(self, names: Iterable[str]) -> dict[str, Any]:
        """Name -> value of those of these fields that are stored, in the order of the names."""
        return {name: getattr(self, name) for name in names if name in self.values}

    # fmt: off
    # What was asked for.
    v = _text("admission")
    fp = _text("admission")
    by_intent = _flag("admission", "the call was named by its turn and its place in it")
    kid = _text("admission", "without keys, or forgotten", "taken")
    tool = _text("admission")
    version = _text("admission")
    kind = _text("admission", "function")
    args = _json("admission _moves", "forgotten", "secret taken")
    secret = _flag("admission", "it has no secret fields")
    scope = _text("admission")
    tenant = _text("admission")
    turn = _text("admission")
    turn_key = _text("_placement")
    call_id = _optional("admission", "the provider gave none")
    reply_id = _optional("_placement _usual_placement", "the call id goes out as it came")
    position = _number("admission")
    echo = _json("admission", "nothing is to be given back with the answer", "taken")
    trace = _text("admission", "the harness was not traced", "taken")
    admitted_by = _text("_placement")
    admitted_at = _time("_placement", "never")
    argument_errors = _number("_placement", "the arguments were of use")
    answers = _lines("_answering", "no inbox entry waits for it", "taken")
    # What the tool's spec said then.
    queue = _text("admission")
    effect = _text("admission declare")
    begins = _flag("admission declare", "its effect counts from its entry on, or forgotten", "taken")
    max_attempts = _number("admission", "forgotten", "taken")
    deadline_ms = _number("admission", "forgotten", "taken")
    approval_ms = _number("admission", "equal calls are not held", "taken")
    hold_duplicates = _flag("admission", "equal calls are not held", "taken")
    unique_by = _text("admission", "its tool names no unique key")
    unique_for = _number("admission", "its unique key lasts as long as its tombstone")
    lanes = _lines("admission", "it shares no order key", "taken")
    predecessors = _number("_at_rest _placement", "it follows no call", "taken")
    duplicate_of = _text("_unique", "no equal call was open")
    unique = _text("_unique", "it has no unique key, or was refused one")
    follows = _text("_following _unique", "it follows no call by a unique key")
    first_unknown = _flag("_following _unique", "the call that it follows is not unknown")
    history = _flag("_history _moves", "its history is what the record says: queued, claimed, settled", "taken")
    # How it stands.
    state = _text("_ledger")
    reason = _text("_held _moves _pauses")
    changed_at = _time("_ledger", "never")
    queued_at = _time("_clock _queue", "queued at its admission, never, or forgotten", "taken")
    not_before = _time("_clock _queue", "at once, never queued, or forgotten", "taken")
    deadline_at = _time("_clock _pauses _placement _queue _usual_placement", "the queue deadline does not run", "taken")
    deadline_left = _number("_queue", "the queue deadline is not paused")
    unpaused_at = _time("_pauses", "no pause has prolonged its deadline", "taken")
    clock_back_at = _time("_clock", "its deadline was not cut because the clock went back")
    waits = _text("_placement _queue", "it waits for no limit, and not for the end of a pause")
    woken = _text("_slots", "no limit has let it in since")
    woken_at = _time("_slots", "no limit has ever let it in")
    adopted = _number("adopt", "never freed for a worker of another version")
    may_have_run = _flag("_at_rest _held _following _placement", "it cannot have run in moments that were lost")
    loss_accepted = _text("accept_call", "nobody accepted the loss for this call")
    cancel_requested = _flag("cancel", "nobody asked it to stop")
    # The question to a person.
    approval_until = _time("_clock _held", "never held for a person")
    approval_from = _time("_clock _held", "never held for a person")
    decided_by = _text("decide", "nobody has decided")
    decided_at = _time("decide", "nobody has decided")
    approved = _flag("decide", "nobody has approved this run")
    no_repeat = _flag("decide", "nobody has said that it is not a repeat")
    # Its runs.
    attempt = _number("_claiming release settle", "never claimed")
    attempt_limit = _number("release retry", "as max_attempts, or forgotten", "taken")
    not_started = _number("release", "each attempt was started", "taken")
    ran_before = _flag("declare retry", "no earlier attempt can have had an effect that does not count")
    fence = _number("_claiming", "never claimed")
    token = _text("_claiming", "never claimed")
    worker = _text("_claiming", "never claimed")
    lease = _number("_claiming", "30,000 ms, or never claimed")
    claimed_at = _time("_claiming", "never claimed")
    begun = _flag("begin _claiming", "not begun")
    begun_at = _time("begin", "no handler has said that it begins")
    progress = _fraction("progress", "the newest attempt told none", "taken")
    progress_message = _optional("progress", "no attempt told any", "taken")
    given_up = _text("_flow", "no run was given up")
    left = _number("interrupt settle", "no handler of an unknown call is known to have ended")
    asked = _number("reconcile_later reconcile", "its reconcile was not asked", "taken")
    heard = _optional("reconcile_later", "its reconcile has said nothing", "taken")
    # How it ended.
    result = _json("_following resolve settle", "it did not succeed, or forgotten", "secret taken")
    error = _json(
        "_at_rest _flow _following _placement _unique admission decide release resolve settle", "no attempt went wrong"
    )
    marks = _json("_claiming _following resolve settle", "nothing is to be said beside the answer", "taken")
    settled_by = _text("_flow _following decide resolve settle", "by its only worker; not settled, or refused at once")
    settled_at = _time("_flow _following resolve settle", "with its last change; not settled, or by an admission")
    resolved_because = _text("resolve", "never resolved")
    evidence_by = _text("settle", "no outcome came too late")
    forgotten = _text("_forget", "its body is stored")
    # fmt: on


FIELDS: dict[str, Field[Any]] = {name: one for name, one in vars(RecordFields).items() if isinstance(one, Field)}
"""The table: all fields, by name."""
FORGOTTEN_FIELDS = tuple(name for name, one in FIELDS.items() if not one.is_kept)
"""What goes with the body of a call."""
PAGE_FIELDS = (
    "tool", "reason", "scope", "turn", "call_id", "position", "attempt", "fence", "worker", "error", "effect",
    "admitted_at", "queue", "not_before", "cancel_requested", "asked", "heard", "waits", "tenant",
)  # fmt: skip
"""What a line of a page shows."""


class ToldAnswer(NamedTuple):
    """What the store tells about one call, as it is stored, in the order of the reply."""

    state: str | None
    tool: str | None
    call_id: str | None
    position: str | None
    kind: str | None
    fp: str | None
    attempt: str | None
    fence: str | None
    reason: str | None
    result: str | None
    error: str | None
    marks: str | None
    echo: str | None
    cancel_requested: str | None
    forgotten: str | None
    turn: str | None
    progress: str | None
    progress_message: str | None
    argument_errors: str | None
    duplicate_of: str | None
    may_have_run: str | None
    reply_id: str | None
    follows: str | None
    first_unknown: str | None


class ToldRun(NamedTuple):
    """What a worker is told in order to run a call, as it is stored, in the order of the reply."""

    tool: str | None
    version: str | None
    kind: str | None
    args: str | None
    fp: str | None
    scope: str | None
    tenant: str | None
    turn: str | None
    call_id: str | None
    position: str | None
    effect: str | None
    begins: str | None
    attempt: str | None
    attempt_limit: str | None
    deadline_at: str | None
    secret: str | None
    cancel_requested: str | None
    trace: str | None
    claimed_at: str | None
    approved: str | None
    kid: str | None
    ran_before: str | None
    not_started: str | None


ANSWER_FIELDS = ToldAnswer._fields
RUN_FIELDS = ToldRun._fields
