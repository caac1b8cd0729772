"""Prepares a claimed call for its handler: whether this worker has the tool, the arguments fit, and it may run.

What it refuses, or gives back, has not been entered: effects 0. Knows no thread and no RQ.
"""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

from ...store.model.errors import KeyringMissing
from ...store.model.keyring import Keyring
from ...store.model.outcomes import Failure
from ...store.model.sealing import Sealer, values_at
from ...store.model.secret_texts import NO_SECRETS, Secrets
from ...store.model.specs import Effect, ToolSpec
from ...store.model.states import State
from ...store.operations.runs import Ending, Run
from ...store.schema.validation import validate
from ..tools.handler_result import told
from ..tools.registry import Registry
from ..tools.results import protect
from ..tools.tool import Tool


@dataclass(frozen=True, slots=True)
class Ready:
    """It may be entered.

    Attributes:
        named: the arguments as decoded, by name.
        values: the keyword arguments as the handler takes them.
        secrets: what must not turn up in words that are stored or logged.
    """

    tool: Tool
    named: dict[str, Any]
    values: dict[str, Any]
    secrets: Secrets = NO_SECRETS

    def copy_values(self) -> dict[str, Any]:
        """A copy of the values for a hook, so that its changes do not reach the handler."""
        try:
            return deepcopy(self.values)
        except Exception:  # a type that cannot be copied, such as a lazy iterable, is read from the arguments again
            again = self.tool.signature.bind(deepcopy(self.named))
            if isinstance(again, Failure):
                raise
            return again

    def protect(self, result: tuple[str, str], run: Run, keyring: Keyring) -> tuple[str, str]:
        """A value as `results.encode` has it, fit for the store: its secret fields sealed, other secrets masked."""
        spec = self.tool.spec
        if not self.tool.has_secrets:
            return result
        seal = Sealer(keyring, run.tenant, run.tool).seal_result

        def change(value: Any) -> Any:
            # What the tool declares secret of its result is so in all of it: in an example, in a text that is JSON.
            secrets = Secrets.of([*self.secrets.texts, *values_at(_read_text(value), spec.secret_result)])
            return seal(value, spec.secret_result, secrets.scrub_value)

        return protect(*result, self.tool.result_limit, change)


@dataclass(frozen=True, slots=True)
class GiveBack:
    """Not for this worker, or not yet: held for this reason."""

    held: str
    approval_ms: int = 0


@dataclass(frozen=True, slots=True)
class Refuse:
    """Never to be entered; this is its outcome."""

    ending: Ending


def prepare(run: Run, registry: Registry, keyring: Keyring) -> Ready | GiveBack | Refuse:
    """Find the tool, open the arguments, and check them again: they come from a store, and perhaps from another
    version of the tool.

    Raises:
        KeyringMissing: the arguments are sealed with a key that is not here.
        CorruptRecord: they are sealed, and cannot be opened with the key that they are said to be sealed with.
        Exception: what a type's own validators raise besides what they should.
    """
    tool = registry.find(run.tool)
    if tool is None or not tool.accepts_version(run.version):
        return GiveBack("no_worker")
    arguments, opened = _opened(run, tool, keyring)
    named, values = _fit(tool, arguments)
    secrets = NO_SECRETS
    if tool.has_secrets or run.secret:
        secrets = Secrets.of([*opened, *values_at(arguments, tool.spec.secret)])
    if isinstance(values, Failure):
        values = Failure(values.code, told(values.message, secrets), secrets.scrub_value(values.details))
        # Another version may take what this one cannot: then the call waits for such a worker.
        return refuse(values) if run.version == tool.spec.version else GiveBack("no_worker")
    return Ready(tool, named, values, secrets)


def _read_text(value: Any) -> Any:
    """What a text that is JSON says; anything else as it is."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def strictest(run: Run, spec: ToolSpec) -> Run:
    """The run under the stricter of two declarations: of the tool that the call was admitted for, and of the one that
    is here now. A deploy may have made it mutating, or may have dropped ``begins`` together with ``call.begin()``: a
    handler that never says it must not pass for one that has not come so far."""
    if spec.effect is not Effect.MUTATING:
        return run
    begins = spec.begins and (run.begins or run.effect is not Effect.MUTATING)
    if run.effect is Effect.MUTATING and run.begins == begins:
        return run
    ran_before = run.ran_before or (run.effect is not Effect.MUTATING and run.attempt > 1)
    return replace(run, effect=Effect.MUTATING, begins=begins, ran_before=ran_before)


def refuse(failure: Failure) -> Refuse:
    """The outcome of a call that was never entered."""
    return Refuse(Ending(State.REFUSED, failure=failure))


def _opened(run: Run, tool: Tool, keyring: Keyring) -> tuple[Any, list[Any]]:
    """The arguments in clear, and what was sealed of them. Where nothing was sealed, a token is the text it is."""
    arguments = json.loads(run.arguments)
    if not run.secret:
        return arguments, []
    if run.key_id not in keyring.ids:
        raise KeyringMissing(f"its secret fields were sealed with key {run.key_id}, which TOOLONCE_KEYS does not list")
    return Sealer(keyring, run.tenant, run.tool).open_arguments(arguments, tool.spec.secret)


def _fit(tool: Tool, arguments: Any) -> tuple[dict[str, Any], dict[str, Any] | Failure]:
    """The arguments by name, and as the handler takes them; or why they do not fit."""
    named = tool.named(arguments)
    if isinstance(named, Failure):
        return {}, named
    # The schema first: its cost is bounded, while pydantic's, for types that choose among types, is not.
    if refusal := validate(tool.spec.schema, named):
        return named, refusal
    exact = tool.signature.bind_exact(named)
    return named, tool.signature.bind(named, has_secrets=tool.has_secrets) if exact is None else exact
