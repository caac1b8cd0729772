"""What a handler takes: the JSON Schema of its arguments, and how decoded arguments become Python values.

Decides by the function's signature and docstring, with pydantic, or takes an explicit schema as it is. The parameter
``call`` is the context: injected, never in the schema. Knows no tool options and no store.
"""

from __future__ import annotations

import inspect
import json
import re
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import SchemaError
from pydantic_core.core_schema import ErrorType

from ...store.model.outcomes import Failure
from ...store.schema.validation import check_schema, find_foreign_reference, find_unbounded_pattern, is_endless
from .core_schemas import MOST_WAYS, backtracks, branching, is_too_deep
from .errors import BadTool

CONTEXT = "call"
_SECTION = re.compile(r"^(Args|Arguments|Parameters|Returns|Raises|Yields|Examples?|Notes?):\s*$", re.MULTILINE)
_ENTRY = re.compile(r"^(\w+)\s*(?:\([^)]*\))?:\s*(.*)$")

_FIELD = "parameter_of_the_handler_"  # dataclasses in the signature ask for aliases of their fields, too
_BUILT_IN = set(typing.get_args(ErrorType)) - {"value_error", "assertion_error"}
_OWN_RULE = "a value that the tool's own rules accept"


class _Untitled(GenerateJsonSchema):
    """Generated titles repeat the names; a model pays for them in tokens."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def decimal_schema(self, schema: Any) -> Any:
        """Without the look-ahead that some releases of pydantic write; pydantic reads the text itself."""
        made = super().decimal_schema(schema)
        for branch in (made, *made.get("anyOf", ())):
            branch.pop("pattern", None)
        return made


@dataclass(frozen=True, slots=True)
class Signature:
    """How a handler is called.

    Attributes:
        schema: JSON Schema 2020-12 of the arguments object.
        description: the docstring's text before its sections.
        takes_call: whether the handler wants the context.
        names: parameter names in the order of the model's fields; () with an explicit schema.
        ways: what pydantic tries at each level of nested values; see `core_schemas.branching`.
    """

    schema: dict[str, Any]
    description: str
    takes_call: bool
    names: tuple[str, ...] = ()
    model: type[BaseModel] | None = None
    ways: int = 0

    def bind(self, arguments: dict[str, Any], *, has_secrets: bool = False) -> dict[str, Any] | Failure:
        """Keyword arguments for the handler, or the refusal where a rule of the signature's types is broken that JSON
        Schema cannot say. Of a tool with secret fields, what its own validators raise is not told: it may hold one."""
        if self.model is None:
            return arguments
        if self.ways > 1 and is_too_deep(arguments, self.ways):
            why = f"the arguments are nested too deeply for types that may be read in more than {MOST_WAYS:,} ways"
            return Failure("too_costly", why, {"errors": []})
        try:
            filled = self.model.model_validate(arguments)
        except ValidationError as error:
            return _refusal(error, has_secrets=has_secrets)
        return dict(zip(self.names, filled.__dict__.values(), strict=True)) | (filled.model_extra or {})

    def bind_exact(self, arguments: dict[str, Any]) -> dict[str, Any] | None:
        """The same for arguments that have the signature's own types already; None where anything is left to validate.

        Nothing is converted in what passes, so it is cheaper than `bind`.
        """
        if self.model is None or (self.ways > 1 and is_too_deep(arguments, self.ways)):
            return None
        try:
            filled = self.model.__pydantic_validator__.validate_python(arguments, strict=True)
        except ValidationError:
            return None
        return dict(zip(self.names, filled.__dict__.values(), strict=True)) | (filled.model_extra or {})

    def check_reconcile(self, tool: str, function: Callable[..., Any]) -> None:
        """Whether a tool's reconcile can be called with the handler's arguments and, if it names it, the context. An
        explicit schema leaves open which arguments there are.

        Raises:
            BadTool: it cannot.
        """
        taken = inspect.signature(function)
        given = (*self.names, CONTEXT) if CONTEXT in taken.parameters else self.names
        try:
            taken.bind(**dict.fromkeys(given))
        except TypeError as error:
            if self.model:
                words = f"tool {tool}: its reconcile does not take the handler's arguments: {error}"
                raise BadTool(words) from None


def read_signature(function: Callable[..., Any], schema: dict[str, Any] | None = None) -> Signature:
    """Look at a handler.

    Raises:
        BadTool: parameters that JSON cannot name, types without a JSON Schema, a pattern that cannot be matched in
            bounded time, or an explicit schema that is invalid, refers to what it does not hold or does not fit the
            parameters.
    """
    name = getattr(function, "__name__", repr(function))
    parameters = dict(inspect.signature(function).parameters)
    takes_call = parameters.pop(CONTEXT, None) is not None
    text, described = _split_doc(inspect.getdoc(function) or "")
    if schema is not None:
        schema = _as_published(name, schema)
        _check_explicit(name, schema, parameters)
        return Signature(schema, text, takes_call)
    model = _model(name, function, parameters, described)
    try:
        made = model.model_json_schema(schema_generator=_Untitled)
    except (PydanticUserError, PydanticSchemaGenerationError) as error:
        raise BadTool(f"tool {name}: no JSON Schema for its signature: {_first_line(error)}") from error
    made.pop("title", None)
    _check_patterns(name, made)
    names = tuple(p.name for p in parameters.values() if p.kind is not p.VAR_KEYWORD)
    return Signature(made, text, takes_call, names, model, branching(model.__pydantic_core_schema__))


def _model(
    name: str, function: Callable[..., Any], parameters: dict[str, inspect.Parameter], described: dict[str, str]
) -> type[BaseModel]:
    """A model with one field per parameter; the fields have names of their own, since a parameter may have any."""
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise BadTool(f"tool {name}: {error} in its annotations") from error
    extra: typing.Literal["allow", "forbid"] = "forbid"
    fields: dict[str, Any] = {}
    for place, parameter in enumerate(parameters.values()):
        match parameter.kind:
            case parameter.VAR_KEYWORD:
                extra = "allow"
            case parameter.POSITIONAL_ONLY | parameter.VAR_POSITIONAL:
                raise BadTool(f"tool {name}: parameter {parameter.name!r} has no name that JSON can use")
            case _:
                fields[f"{_FIELD}{place}"] = _field(parameter, hints.get(parameter.name, Any), described)
    aliases = {f"{_FIELD}{place}": parameter for place, parameter in enumerate(parameters)}
    try:
        model: type[BaseModel] = create_model(
            name, __config__=ConfigDict(extra=extra, alias_generator=lambda name: aliases.get(name, name)), **fields
        )
    except (PydanticUserError, PydanticSchemaGenerationError) as error:
        raise BadTool(f"tool {name}: no schema for its signature: {_first_line(error)}") from error
    except SchemaError as error:  # of several lines the last one says why
        raise BadTool(f"tool {name}: no schema for its signature: {str(error).splitlines()[-1]}") from error
    if backtracks(model.__pydantic_core_schema__):
        raise BadTool(
            f"tool {name}: a pattern of its types is for Python's own engine, which may take forever; give the "
            "pattern as text, and leave regex_engine='python-re' out"
        )
    return model


def _field(parameter: inspect.Parameter, hint: Any, described: dict[str, str]) -> tuple[Any, Any]:
    """The annotation and the default; the docstring describes what no Field does."""
    default = ... if parameter.default is parameter.empty else parameter.default
    text = described.get(parameter.name)
    if text and not FieldInfo.from_annotated_attribute(hint, default).description:
        hint = typing.Annotated[hint, Field(description=text)]
    return hint, default


def _as_published(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """The schema as others will read it, so that here and there the same is validated."""
    try:
        stored: dict[str, Any] = json.loads(json.dumps(schema, allow_nan=False))
        return stored
    except (TypeError, ValueError, RecursionError) as error:
        raise BadTool(f"tool {name}: its schema is not JSON: {error}") from error


def _check_explicit(name: str, schema: dict[str, Any], parameters: dict[str, inspect.Parameter]) -> None:
    wrong = check_schema(schema)
    if wrong:
        raise BadTool(f"tool {name}: its schema is not a JSON Schema 2020-12: {wrong}")
    if foreign := find_foreign_reference(schema):
        raise BadTool(
            f"tool {name}: its schema refers to {foreign!r}, which it does not hold; nothing is fetched, so put that "
            "under $defs and refer to '#/$defs/...'"
        )
    _check_patterns(name, schema)
    if is_endless(schema):
        raise BadTool(f"tool {name}: its schema refers to itself without end")
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return
    unknown = sorted(set(schema.get("properties", ())) - set(parameters))
    if unknown:
        raise BadTool(f"tool {name}: the schema has {', '.join(unknown)}, which the handler does not take")


def _check_patterns(name: str, schema: dict[str, Any]) -> None:
    if unbounded := find_unbounded_pattern(schema):
        raise BadTool(f"tool {name}: its schema's pattern {unbounded}")


def _split_doc(doc: str) -> tuple[str, dict[str, str]]:
    """The description, and what an ``Args:`` section says about each parameter."""
    pieces = _SECTION.split(doc)
    sections = dict(zip(pieces[1::2], pieces[2::2], strict=True))
    listed = next((sections[title] for title in ("Args", "Arguments", "Parameters") if title in sections), "")
    described: dict[str, str] = {}
    current = None
    for line in inspect.cleandoc(listed).splitlines():
        entry = _ENTRY.match(line)
        if entry and not line.startswith(" "):
            current = entry[1]
            described[current] = entry[2].strip()
        elif current and line.strip():
            described[current] = f"{described[current]} {line.strip()}".strip()
    return pieces[0].strip(), described


def _refusal(error: ValidationError, *, has_secrets: bool) -> Failure:
    found = error.errors(include_input=False, include_url=False, include_context=False)[:5]
    errors = [
        {"path": _place(e["loc"]), "expected": _expected(e["msg"], e["type"], has_secrets), "keyword": e["type"]}
        for e in found
    ]
    lines = "; ".join(f"{e['path']}: {e['expected']}" for e in errors)
    return Failure("invalid_arguments", f"the arguments do not fit the tool's signature: {lines}", {"errors": errors})


def _expected(words: str, kind: str, has_secrets: bool) -> str:
    return _OWN_RULE if has_secrets and kind not in _BUILT_IN else words


def _place(steps: tuple[int | str, ...]) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
