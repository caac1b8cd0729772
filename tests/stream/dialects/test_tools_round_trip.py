"""What a model writes by a definition is admitted: from any tool, through each provider's stream, to our rules."""

from __future__ import annotations

import inspect
import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import Field

from tests.support.stream.offered import Card, Cash, Person, PersonPlace, TreeNode, tools
from tests.support.stream.tool_rules import refusal
from tests.support.stream.wire import RENDER, WireCall
from toolonce.store.model.keyring import Keyring
from toolonce.store.model.sealing import Sealer
from toolonce.store.model.specs import Effect, Published, ToolSpec
from toolonce.store.operations.admission import Identified, NewCall
from toolonce.store.schema.validation import check_schema, find_foreign_reference, is_endless, validate
from toolonce.stream import DIALECTS, Dialect, TurnDecoder
from toolonce.stream.dialects.tools import offered
from toolonce.stream.harness.admission_rules import AdmissionRules
from toolonce.stream.harness.submission import asked_of
from toolonce.worker.tools.tool import Tool

WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=8)
NUMBERS = st.integers(-(2**53), 2**53)
ADDRESS = st.fixed_dictionaries({"city": WORDS}, optional={"zip_code": st.none() | st.sampled_from(["1234", "12345"])})
TREE = st.recursive(
    st.fixed_dictionaries({"value": NUMBERS}),
    lambda trees: st.fixed_dictionaries({"value": NUMBERS, "children": st.lists(trees, max_size=2)}),
    max_leaves=4,
)
# A parameter's type -> arguments that fit it.
TYPES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (str, WORDS),
    (int, NUMBERS),
    (bool, st.booleans()),
    (float, st.floats(allow_nan=False, allow_infinity=False)),
    (str | None, st.none() | WORDS),
    (list[int], st.lists(NUMBERS, max_size=3)),
    (dict[str, int], st.dictionaries(WORDS, NUMBERS, max_size=3)),
    (tuple[int, str], st.tuples(NUMBERS, WORDS).map(list)),
    (Literal["a", "b"], st.sampled_from(["a", "b"])),
    (Annotated[int, Field(ge=0, lt=10, multiple_of=3)], st.sampled_from([0, 3, 6, 9])),
    (Annotated[str, Field(min_length=1, max_length=3, pattern="^[a-c]+$")], st.text("abc", min_size=1, max_size=3)),
    (PersonPlace, st.fixed_dictionaries({"x": st.just(1.5), "y": st.integers(0, 9)})),
    (Person, st.fixed_dictionaries({"name": WORDS, "home": ADDRESS, "work": ADDRESS})),
    (TreeNode | None, st.none() | TREE),
    (
        Annotated[Card | Cash, Field(discriminator="kind")],
        st.sampled_from([{"kind": "cash"}, {"kind": "card", "number": "1"}]),
    ),
    (list[TreeNode | int], st.lists(TREE | NUMBERS, max_size=2)),
    (Any, st.none() | WORDS | st.lists(NUMBERS, max_size=2)),
]  # fmt: skip
ANYTHING = st.recursive(
    st.none() | st.booleans() | NUMBERS | WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS | st.sampled_from("ab"), inner, max_size=2),
    max_leaves=5,
)


@dataclass(frozen=True)
class DrawnTool:
    """The signature of a handler, the effect of its tool, and arguments that fit."""

    parameters: tuple[tuple[Any, bool], ...]
    effect: Literal["read", "mutating"]
    arguments: dict[str, Any]

    def spec(self) -> ToolSpec:
        """As a worker would publish it."""

        def handler(**arguments: Any) -> None: ...

        parameters = [
            inspect.Parameter(f"a{at}", inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=None)
            if has_default
            else inspect.Parameter(f"a{at}", inspect.Parameter.KEYWORD_ONLY, annotation=kind)
            for at, (kind, has_default) in enumerate(self.parameters)
        ]
        handler.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        handler.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return ToolSpec.from_json(Tool(handler, {"effect": self.effect}).spec.to_json())


@st.composite
def drawn_tools(draw: st.DrawFn) -> DrawnTool:
    chosen = [(*one, draw(st.booleans())) for one in draw(st.lists(st.sampled_from(TYPES), max_size=4))]
    arguments = {
        f"a{at}": draw(values)
        for at, (_, values, has_default) in enumerate(chosen)
        if not has_default or draw(st.booleans())
    }
    parameters = tuple((kind, has_default) for kind, _, has_default in chosen)
    return DrawnTool(parameters, draw(st.sampled_from(["read", "mutating"])), arguments)


def schema_of(dialect: Dialect, spec: ToolSpec) -> dict[str, Any]:
    found = offered([spec], dialect)[0]
    inner = found.get("toolSpec") or found.get("function") or found.get("functionDeclarations", [found])[0]
    place = inner.get("inputSchema", {}).get("json") or inner.get("parameters") or inner.get("parametersJsonSchema")
    return place or inner["input_schema"]  # type: ignore[no-any-return]


def admitted(dialect: Dialect, name: str, arguments: Any, *specs: ToolSpec, keyring: Keyring | None = None) -> NewCall:
    """The call of a stream in which the model writes these arguments, as our rules take it in."""
    decoder = TurnDecoder(dialect)
    decoder.feed(RENDER[dialect]([WireCall("id_1", name, (json.dumps(arguments),))], [0], ""))
    published = Published(1, {spec.name: spec for spec in specs})
    rules = AdmissionRules(published, keyring or Keyring(), "acme/talk", "0" * 32, "acme")
    steps = rules.turn(asked_of(decoder.eof()), [Identified("1" * 32, ("2" * 32,))], [True])
    with pytest.raises(StopIteration) as end:
        next(steps)
    (new,) = end.value.value
    return new  # type: ignore[no-any-return]


@pytest.mark.parametrize("dialect", DIALECTS)
@given(drawn=drawn_tools())
@settings(max_examples=25, deadline=None)
def test_arguments_that_fit_a_tool_fit_its_definition_and_the_call_is_admitted(
    dialect: Dialect, drawn: DrawnTool
) -> None:
    spec, arguments = drawn.spec(), drawn.arguments

    assert refusal(dialect, offered([spec], dialect).request()) is None
    assert validate(schema_of(dialect, spec), arguments) is None
    call = admitted(dialect, spec.name, arguments, spec)
    assert (call.refusal, json.loads(call.arguments)) == (None, arguments)


@pytest.mark.parametrize("dialect", DIALECTS)
@given(drawn=drawn_tools(), change=st.dictionaries(st.sampled_from(["a0", "a1", "b"]), ANYTHING, max_size=2))
@settings(max_examples=25, deadline=None)
def test_what_a_definition_admits_of_a_signature_is_what_admission_admits(
    dialect: Dialect, drawn: DrawnTool, change: dict[str, Any]
) -> None:
    spec, arguments = drawn.spec(), drawn.arguments

    shown = validate(schema_of(dialect, spec), arguments | change)

    assert (shown is None) == (validate(spec.schema, arguments | change) is None)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("untyped", {"a": [1, "x"]}),
        ("empty", {"x": 1}),
        ("root_reference", {"n": 1}),
        ("root_choice", {"id": "1", "by": 2}),
        ("root_choice", {"id": "1", "by": "me", "of": None}),
        ("root_all", {"a": 1, "b": 2}),
        ("beside_reference", {"n": 5}),
    ],
)
def test_arguments_that_fit_an_explicit_schema_fit_its_definition_and_the_call_is_admitted(
    dialect: Dialect, name: str, arguments: dict[str, Any]
) -> None:
    (spec,) = (one for one in tools.specs() if one.name == name)

    assert validate(schema_of(dialect, spec), arguments) is None
    assert admitted(dialect, name, arguments, spec).refusal is None


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_sealed_value_that_a_definition_lets_pass_is_admitted_where_it_was_sealed_for_this_tenant(
    dialect: Dialect,
) -> None:
    keyring = Keyring.parse("k" * 32)
    mint, sign_in = (one for one in tools.specs() if one.name in ("mint", "sign_in"))
    token = Sealer(keyring, "acme", "mint").seal_result({"key": "sk-1"}, ["key"])["key"]
    stolen = Sealer(keyring, "other", "mint").seal_result({"key": "sk-1"}, ["key"])["key"]

    passed, refused = (
        admitted(dialect, "sign_in", {"token": value}, mint, sign_in, keyring=keyring) for value in (token, stolen)
    )

    assert passed.refusal is None
    assert "sk-1" not in passed.arguments
    assert refused.refusal is not None


NAMES = st.sampled_from(["a", "b", "c"])
REFERENCES = st.sampled_from(["#", "#/$defs/one", "#/$defs/two", "#/properties/a", "#/$defs/one/items"])


def schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Schemas of a few keywords, valid or not in what they mean together."""
    keywords = {
        "type": st.sampled_from(["object", "array", "string", "integer", ["object", "null"]]),
        "properties": st.dictionaries(NAMES, inner, max_size=3),
        "required": st.lists(NAMES, unique=True, max_size=2),
        "additionalProperties": inner,
        "items": inner,
        "prefixItems": st.lists(inner, min_size=1, max_size=2),
        "anyOf": st.lists(inner, min_size=1, max_size=2),
        "oneOf": st.lists(inner, min_size=1, max_size=2),
        "allOf": st.lists(inner, min_size=1, max_size=2),
        "not": inner,
        "maximum": st.integers(0, 9),
        "$ref": REFERENCES,
    }
    return st.fixed_dictionaries({}, optional=keywords).map(lambda made: dict(list(made.items())[:4]))


ROOTS = st.builds(
    lambda root, one, two: {**root, "$defs": {"one": one, "two": two}},
    st.recursive(st.booleans(), schemas, max_leaves=6).filter(lambda made: isinstance(made, dict)),
    *[st.recursive(st.booleans(), schemas, max_leaves=3)] * 2,
)


@pytest.mark.parametrize("dialect", DIALECTS)
@given(schema=ROOTS, values=st.lists(st.dictionaries(NAMES, ANYTHING, max_size=3), min_size=1, max_size=5))
@settings(max_examples=15, deadline=None)
def test_a_definition_never_admits_less_than_the_tools_own_schema(
    dialect: Dialect, schema: dict[str, Any], values: list[dict[str, Any]]
) -> None:
    assume(check_schema(schema) is None and not find_foreign_reference(schema) and not is_endless(schema))
    spec = ToolSpec("pay", schema=schema, effect=Effect.READ)

    shown = schema_of(dialect, spec)

    assert refusal(dialect, offered([spec], dialect).request()) is None
    assert find_foreign_reference(shown) is None
    assume(not schema.keys() & {"anyOf", "oneOf", "$ref", "allOf"})  # written out, they are told as such
    assume(schema.get("type") == "object" or '"#"' not in json.dumps(schema))  # else the root is another one inside
    for value in values:
        assert validate(schema, value) is not None or validate(shown, value) is None
