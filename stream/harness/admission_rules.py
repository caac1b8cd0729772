"""Decides how a new call is admitted: queued, held for a reason, or refused with an error for the model.

Pure: depends on the call and the published specs only. A refused call is stored like any other, so that a harness that
resumes gets one reply for each call.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...store.model import ordering
from ...store.model.errors import CorruptRecord, KeyringMissing
from ...store.model.keyring import Keyring
from ...store.model.outcomes import Failure
from ...store.model.sealing import Sealer, clear
from ...store.model.specs import Published, ToolSpec
from ...store.model.unique_keys import Owner, unique_keys
from ...store.operations.admission import Identified, NewCall
from ...store.schema.validation import Heavy, validate_here
from ..turns.turn import RejectedCall, ToolCall
from ..wire.arguments import check_held, storable

_UNUSABLE = {
    "unusable_name": "the tool's name is not a usable string",
    "unusable_id": "the call's id is not a usable string",
    "not_text": "the input is not a string",
}
_NAMELESS = "?"


@dataclass(frozen=True, slots=True)
class RequestedCall:
    """One call as the model requested it.

    Attributes:
        arguments: an object; the input text of a custom call; the argument text of a rejected call.
        rejected: why the decoder refused the arguments, "" where it did not.
    """

    tool: str
    arguments: dict[str, Any] | str
    call_id: str | None = None
    kind: str = "function"
    rejected: str = ""
    echo: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def held(cls, call: ToolCall, fault: str = "") -> RequestedCall:
        """A call that the caller built. One that cannot be used is refused, which is no exception: it gets one stored
        answer, and the other calls run. `fault`: a reason to refuse it that was found before."""
        name, call_id = _name(call.name), _id(call.call_id)
        checked = check_held(call.arguments, call.kind)
        fault = fault or ("unusable_name" if name != call.name else "unusable_id" if call_id != call.call_id else "")
        if (reason := fault or checked.reason) or checked.value is None:
            return cls(name, checked.text, call_id, call.kind, rejected=reason or "invalid_json", echo=call.echo)
        return cls(name, checked.value, call_id, call.kind, echo=call.echo)

    @classmethod
    def refused(cls, call: RejectedCall) -> RequestedCall:
        """A call that a decoder refused."""
        return cls(_name(call.name), call.raw, _id(call.call_id), call.kind, rejected=call.reason, echo=call.echo)

    @property
    def named_arguments(self) -> dict[str, Any]:
        """The arguments for schema and handler: the text of a custom call becomes the argument ``input``."""
        return self.arguments if isinstance(self.arguments, dict) else {"input": self.arguments}


@dataclass(frozen=True, slots=True)
class AdmissionRules:
    """Applies the published specs to the new calls of one turn.

    Attributes:
        tenant: the tenant of the calls; sealed values of another tenant are not opened.
        came_clear: the calls came unsealed through an inbox, so calls of tools with secret fields are refused.
    """

    specs: Published
    keyring: Keyring
    scope: str
    turn_key: str
    tenant: str = ""
    ordered: bool = False
    trace: str = ""
    came_clear: bool = False
    namespace: str = ""

    def turn(
        self, calls: Sequence[RequestedCall], found: Sequence[Identified], wanted: Sequence[bool]
    ) -> Generator[Heavy, Failure | None, list[NewCall]]:
        """The wanted calls in the form in which they are stored; positions count all calls of the turn.

        Yields validations that take long, and is sent their results.

        Raises:
            KeyringMissing: a tool has secret fields, and there are no keys.
        """
        earlier: dict[str, list[str]] = {}
        new = []
        for position, (call, identity) in enumerate(zip(calls, found, strict=True)):
            if wanted[position]:
                new.append((yield from self._new_call(position, call, identity, earlier)))
            earlier.setdefault(call.tool, []).append(identity.key)
        return new

    def _new_call(
        self, position: int, call: RequestedCall, identity: Identified, earlier: dict[str, list[str]]
    ) -> Generator[Heavy, Failure | None, NewCall]:
        spec = self.specs.tools.get(call.tool)
        if spec is None and call.tool in self.specs.unreadable:
            raise CorruptRecord(f"the spec of tool {call.tool!r} cannot be read by this release; upgrade toolonce here")
        asked = self._accepted(call, spec)
        verdict = self._refusal(call, spec, clear(asked) if spec and spec.secret else asked)
        refusal = (yield verdict) if isinstance(verdict, Heavy) else verdict
        runs = spec is not None and refusal is None
        return NewCall(
            identity=identity,
            tool=call.tool,
            arguments=self._stored_arguments(call, spec, asked, is_refused=refusal is not None),
            position=position,
            call_id=call.call_id,
            spec=spec,
            kind=call.kind,
            refusal=refusal,
            held="approval" if runs and spec and spec.approval == "always" else "",
            lanes=self._lanes(call, spec) if runs and spec else (),
            predecessors=tuple(key for tool in spec.after for key in earlier.get(tool, [])) if runs and spec else (),
            after=spec.after if runs and spec else (),
            unique_keys=self._unique_keys(call, spec) if runs and spec else (),
            echo=call.echo,
            key_id=self.keyring.newest_id,
            secret=bool(spec and spec.secret),
            trace=self.trace,
        )

    def _accepted(self, call: RequestedCall, spec: ToolSpec | None) -> Any:
        """The arguments with their sealed values opened, where this tenant and tool may; other tokens stay text."""
        if spec is None or not spec.secret or call.rejected:
            return call.named_arguments
        return self._sealer(spec).accept(call.named_arguments, spec.secret, self.specs.tools)

    def _sealer(self, spec: ToolSpec) -> Sealer:
        if not self.keyring.keys:
            raise KeyringMissing(
                f"tool {spec.name!r} has secret fields: set TOOLONCE_KEYS to the workers' where you submit its calls"
            )
        return Sealer(self.keyring, self.tenant, spec.name)

    def _refusal(self, call: RequestedCall, spec: ToolSpec | None, arguments: Any) -> Failure | Heavy | None:
        if call.rejected:
            what = _UNUSABLE.get(call.rejected, f"the arguments are not a usable JSON object: {call.rejected}")
            return Failure("invalid_arguments", what, {"reason": call.rejected})
        if spec is None:
            known = sorted(self.specs.tools)
            words = f"there is not a tool {call.tool!r}; the tools are: {', '.join(known)}"
            return Failure("unknown_tool", words, {"tools": known})
        if spec.secret and self.came_clear:
            return Failure("unsealed", f"tool {call.tool!r} has secret fields: its inbox entries must be sealed")
        return validate_here(spec.schema, arguments)

    def _stored_arguments(self, call: RequestedCall, spec: ToolSpec | None, arguments: Any, *, is_refused: bool) -> str:
        if call.rejected:
            # Text that cannot be decoded may contain a secret anywhere, and is not needed again.
            return json.dumps({"$rejected": "" if spec and spec.secret else call.arguments})
        if spec and spec.secret:
            sealer = self._sealer(spec)
            if is_refused:
                return json.dumps(sealer.seal_whole(call.named_arguments), separators=(",", ":"))
            arguments = sealer.seal_arguments(arguments, spec.secret)
        return json.dumps(arguments, separators=(",", ":"))

    def _unique_keys(self, call: RequestedCall, spec: ToolSpec) -> tuple[str, ...]:
        return unique_keys(spec, Owner(self.namespace, self.scope, self.tenant), call.named_arguments, self.keyring)

    def _lanes(self, call: RequestedCall, spec: ToolSpec) -> tuple[str, ...]:
        own = ordering.lanes(self.scope, call.tool, spec.order_by, call.named_arguments)
        return (*own, ordering.turn_lane(self.turn_key)) if self.ordered else own


def _name(name: Any) -> str:
    return storable(str(name)) if isinstance(name, str) and name else _NAMELESS


def _id(call_id: Any) -> str | None:
    return storable(str(call_id)) if isinstance(call_id, str) else None
