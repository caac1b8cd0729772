"""One tool: a handler with what was declared about it. Decides which declarations make sense together.

Knows no store but the spec's shape, and nothing of how handlers are run.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from ...store.model import unique_keys
from ...store.model.outcomes import Failure
from ...store.model.rates import Rate
from ...store.model.secret_schemas import without_samples
from ...store.model.specs import Effect, ToolSpec
from ...store.model.times import span_ms
from .errors import BadTool
from .options import Isolation, SecretResult, ToolOptions
from .results import DEFAULT_LIMIT
from .retries import Retry, read_retry
from .signature import CONTEXT, Signature, read_signature

if TYPE_CHECKING:
    import typing_extensions  # type checkers know it; a plain `Tool` is one of any signature to them

    from .registry import Registry

    P = typing_extensions.ParamSpec("P", default=...)
    R = typing_extensions.TypeVar("R", default=Any)
else:
    P = ParamSpec("P")
    R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")
_WORD = re.compile(r"\S{1,200}\Z")
_PLACE = re.compile(r"[A-Za-z0-9_.-]+\.\S+\Z")
_PATH = re.compile(r"[.:]")
Handler = Callable[..., Any] | Callable[..., Awaitable[Any]]


class Tool(Generic[P, R]):
    """A registered handler; calling it calls the function, with its own signature, as in any test.

    A direct call gives the handler's ``call=``, where it has that parameter; `testing.call_for` makes one.

    Attributes:
        spec: what is published about it.
        reconciler: the function given to `reconcile`, or None.
        home: the registry that it was made in, or first given to; its hook goes with the tool.
    """

    def __init__(self, handler: Callable[P, R], options: ToolOptions) -> None:
        _refuse_strange(handler, options)
        self.handler = handler
        self.is_async = inspect.iscoroutinefunction(handler)
        self.signature: Signature = read_signature(handler, options.get("schema"))
        self.isolation = _isolation(options, is_async=self.is_async)
        self.retry = read_retry(options.get("retry"))
        self.not_started = options.get("not_started", ())
        self.accepts = _words(options["accepts"]) if "accepts" in options else None
        self.result_limit = options.get("result_limit", DEFAULT_LIMIT)
        self.reconciler: Handler | None = None
        self.reconciler_takes_call = False
        self.home: Registry | None = None
        self.spec = _spec(handler, options, self.signature, self.retry)
        self.__doc__ = handler.__doc__
        self.__name__ = getattr(handler, "__name__", self.spec.name)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.handler(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Tool {self.name} ({self.spec.effect})>"

    @property
    def name(self) -> str:
        """The name that models call it by."""
        return self.spec.name

    @property
    def has_secrets(self) -> bool:
        """Whether an argument or a part of the result is secret."""
        return bool(self.spec.secret or self.spec.secret_result)

    def reconcile(self, function: F) -> F:
        """Declare the reconcile: it takes the same arguments and ``call``, and looks whether the effect is there.

        It returns the outcome of what happened, raises `DidNotHappen` where it did not and will not happen, or anything
        else where it cannot tell: then it is asked again, after 1 s and twice as long each time, up to ten minutes. It
        runs where the handler runs, for as long as that may, at most 5 minutes (60 s without a ``timeout``). Raises
        `BadTool` where the tool has one already, and where this one does not take the handler's arguments.
        """
        if self.reconciler is not None:
            raise BadTool(f"tool {self.name}: it has a reconcile already")
        self.signature.check_reconcile(self.name, function)
        self.reconciler, self.spec = function, replace(self.spec, reconciles=True)
        self.reconciler_takes_call = CONTEXT in inspect.signature(function).parameters
        return function

    @property
    def served(self) -> tuple[str, str, tuple[str, ...]]:
        """Its name, its version, and the other versions whose calls it takes, ``*`` for all."""
        return self.name, self.spec.version, ("*",) if self.accepts is None else self.accepts

    def accepts_version(self, version: str) -> bool:
        """Whether calls that were admitted for this version of the tool may run here."""
        return version == self.spec.version or self.accepts is None or version in self.accepts

    def named(self, arguments: Any) -> dict[str, Any] | Failure:
        """The arguments by name, or the refusal of anything else. (A custom tool's text is its argument ``input``.)"""
        return arguments if isinstance(arguments, dict) else Failure("invalid_arguments", "expected an object")


def _refuse_strange(handler: Handler, options: ToolOptions) -> None:
    """Refuse unknown options, since a misspelt one would leave a tool without its limit."""
    if strange := sorted(options.keys() - ToolOptions.__annotations__.keys()):
        raise BadTool(f"there is no option {', '.join(strange)}; see `ToolOptions` for those that there are")
    if inspect.isgeneratorfunction(handler) or inspect.isasyncgenfunction(handler):
        raise BadTool("a tool returns its result; a generator yields many")


def _isolation(options: ToolOptions, *, is_async: bool) -> Isolation:
    try:
        chosen = Isolation(options.get("isolation", Isolation.ASYNC if is_async else Isolation.THREAD))
    except ValueError:
        raise BadTool(f"isolation is 'thread', 'async' or 'process', not {options['isolation']!r}") from None
    if chosen is Isolation.ASYNC and not is_async:
        raise BadTool("isolation='async' needs an async function: another one would stop the whole event loop")
    if chosen is Isolation.THREAD and is_async:
        raise BadTool("isolation='thread' is for plain functions; an async one runs on the event loop or in a process")
    return chosen


def _spec(handler: Handler, options: ToolOptions, signature: Signature, retry: Retry) -> ToolSpec:
    name = options.get("name") or str(getattr(handler, "__name__", ""))
    if not _NAME.match(name):
        raise BadTool(f"tool {name!r}: its name needs 1 to 64 letters, digits, '_', '.' or '-'")
    spec = ToolSpec(
        name=name,
        schema=without_samples(signature.schema, _words(options.get("secret", ()))),
        description=options.get("description") or signature.description,
        version=options.get("version", "1"),
        effect=_effect(name, options),
        timeout_ms=_run_limit_ms(name, options.get("timeout", 20)),
        max_attempts=retry.attempts,
        deadline_ms=_ms(name, "deadline", options.get("deadline", 600)),
        queue=options.get("queue", "default"),
        concurrency=options.get("concurrency"),
        rate=_rate(name, options.get("rate")),
        order_by=_words(options.get("order_by", ())),
        after=_words(options.get("after", ())),
        approval=options.get("approval", "never"),
        approval_ms=_ms(name, "approval_lifetime", options.get("approval_lifetime", 86_400)),
        secret=_words(options.get("secret", ())),
        secret_result=_words(options.get("secret_result", ())),
        opens_in=_opens_in(name, options.get("secret_result", ())),
        begins=options.get("begins", False),
        rerun_absent=options.get("rerun_absent", False),
        hold_duplicates=options.get("hold_duplicates", False),
        unique_by=_words(options.get("unique_by", ())),
        unique_in=options.get("unique_in", "scope"),
        unique_for_ms=_span_ms(name, "unique_for", options["unique_for"]) if "unique_for" in options else 0,
    )
    _check(spec, takes_call=signature.takes_call)
    return spec


def _check(spec: ToolSpec, *, takes_call: bool) -> None:
    known = spec.schema.get("properties", {})
    for option, fields in (("order_by", spec.order_by), ("secret", spec.secret)):
        if missing := [name for name in fields if _PATH.split(name)[0] not in known]:
            raise BadTool(f"tool {spec.name}: {option} names {', '.join(missing)}, which is not an argument of it")
    if lanes := {_PATH.split(name)[0] for name in spec.order_by} & {name.split(".")[0] for name in spec.secret}:
        raise BadTool(f"tool {spec.name}: order_by names {', '.join(sorted(lanes))}, which is secret: lanes are not")
    for option, word in (("queue", spec.queue), ("version", spec.version)):
        if not isinstance(word, str) or not _WORD.match(word):
            raise BadTool(f"tool {spec.name}: {option} {word!r} is not text without spaces")
    if spec.concurrency is not None and not isinstance(spec.concurrency, int):
        raise BadTool(f"tool {spec.name}: concurrency {spec.concurrency!r} is not a whole number")
    if spec.concurrency is not None and spec.concurrency < 1:
        raise BadTool(f"tool {spec.name}: concurrency {spec.concurrency} would never run it")
    if spec.approval not in {"never", "always", "hook"}:
        raise BadTool(f"tool {spec.name}: approval is 'never', 'always' or 'hook', not {spec.approval!r}")
    if spec.begins and not takes_call:
        raise BadTool(f"tool {spec.name}: begins=True needs the parameter 'call', to say call.begin()")
    if fault := unique_keys.check(spec):
        raise BadTool(f"tool {spec.name}: {fault}")
    if spec.after and spec.name in spec.after:
        raise BadTool(f"tool {spec.name}: it cannot come after itself")


def _effect(name: str, options: ToolOptions) -> Effect:
    try:
        return Effect(options.get("effect", Effect.MUTATING))
    except ValueError:
        raise BadTool(f"tool {name}: effect is 'read', 'idempotent' or 'mutating', not {options['effect']!r}") from None


def _run_limit_ms(name: str, given: float | None) -> int:
    try:
        return 0 if given is None else _ms(name, "timeout", given)
    except BadTool as error:
        raise BadTool(f"{error}; timeout=None is no limit") from None


def _rate(name: str, given: str | None) -> str | None:
    try:
        return None if given is None else str(Rate.parse(given))
    except ValueError as error:
        raise BadTool(f"tool {name}: rate {error}") from None


def _ms(name: str, option: str, given: float) -> int:
    if isinstance(given, str):
        raise BadTool(f"tool {name}: {option} {given!r} is not a number of seconds")
    return _span_ms(name, option, given)


def _span_ms(name: str, option: str, given: float | str) -> int:
    try:
        return span_ms(option, given)
    except ValueError as error:
        raise BadTool(f"tool {name}: {error}") from None


def _opens_in(name: str, given: object) -> dict[str, tuple[str, ...]]:
    """Where a sealed value of a result is opened again, by result field."""
    opens: dict[str, tuple[str, ...]] = {}
    for field, declared in given.items() if isinstance(given, dict) else ():
        if not isinstance(declared, dict) or declared.keys() - SecretResult.__annotations__.keys():
            raise BadTool(f"tool {name}: secret_result {field!r} takes {{'opens_in': ['tool.field', ...]}}")
        places = _words(declared.get("opens_in", ()))
        if strange := [place for place in places if not isinstance(place, str) or not _PLACE.match(place)]:
            raise BadTool(f"tool {name}: opens_in {strange[0]!r} is no 'tool.field'")
        opens[field] = places
    return opens


def _words(given: str | Iterable[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)
