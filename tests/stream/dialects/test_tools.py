"""The definitions of tools in each dialect: shape, names, strictness, secrets, parallel calls."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.store.scene import spec
from tests.support.stream.offered import tools
from tests.support.stream.tool_rules import refusal
from toolonce.store.model.specs import Effect, ToolSpec
from toolonce.store.schema.validation import check_schema, find_foreign_reference, validate
from toolonce.stream import DIALECTS, Dialect, NotOffered, ToolNotOffered, UnknownDialect, forbid_parallel_calls
from toolonce.stream.dialects.table import TABLE
from toolonce.stream.dialects.tools import ToolDefinitions, described, offered

SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}
LOOK = spec("look", "read", description="Look it up.", schema=SCHEMA)
PAY = spec("pay", schema={"type": "object", "properties": {"n": {"type": "integer"}}})
SPECS = {one.name: one for one in tools.specs()}

SHAPES: dict[Dialect, Any] = {
    "openai-responses": {
        "type": "function", "name": "look", "description": "Look it up.", "parameters": SCHEMA, "strict": True,
    },
    "openai-chat": {
        "type": "function",
        "function": {"name": "look", "description": "Look it up.", "parameters": SCHEMA, "strict": True},
    },
    "anthropic": {"name": "look", "description": "Look it up.", "input_schema": SCHEMA},
    "google-generate": {
        "functionDeclarations": [{"name": "look", "description": "Look it up.", "parametersJsonSchema": SCHEMA}]
    },
    "google-interactions": {
        "type": "function", "name": "look", "description": "Look it up.", "parameters": SCHEMA,
    },
    "bedrock-converse": {
        "toolSpec": {"name": "look", "description": "Look it up.", "inputSchema": {"json": SCHEMA}}
    },
    "ollama": {"type": "function", "function": {"name": "look", "description": "Look it up.", "parameters": SCHEMA}},
    "cohere": {"type": "function", "function": {"name": "look", "description": "Look it up.", "parameters": SCHEMA}},
}  # fmt: skip


def by_name(dialect: Dialect, *specs: ToolSpec) -> dict[str, Any]:
    """Name -> the part of the request that names the tool."""
    found: dict[str, Any] = {}
    for entry in described(specs, dialect):
        inner = entry.get("toolSpec") or entry.get("function") or entry
        found |= {one["name"]: one for one in inner.get("functionDeclarations", [inner])}
    return found


def schema_in(named: dict[str, Any]) -> Any:
    place = named.get("inputSchema", {}).get("json")
    return place or named.get("parameters") or named.get("parametersJsonSchema") or named.get("input_schema")


def notes(dialect: Dialect, *specs: ToolSpec) -> list[str]:
    return [f"{note.tool}: {note.text}" for note in described(specs, dialect).notes]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_tool_is_written_in_the_shape_of_every_dialects_request(dialect: Dialect) -> None:
    assert offered([LOOK], dialect) == [SHAPES[dialect]]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_tools_stand_in_the_order_of_their_names_so_that_a_cached_prompt_stays_the_same(dialect: Dialect) -> None:
    assert offered([PAY, LOOK], dialect) == offered([LOOK, PAY], dialect)
    assert list(by_name(dialect, PAY, LOOK)) == ["look", "pay"]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", SPECS)
def test_no_provider_refuses_the_definition_of_a_tool_that_a_registry_takes(dialect: Dialect, name: str) -> None:
    made = offered([SPECS[name]], dialect)
    schema = schema_in(by_name(dialect, SPECS[name])[name])

    assert refusal(dialect, made.request()) is None
    assert json.loads(json.dumps(made)) == made
    assert (check_schema(schema), find_foreign_reference(schema)) == (None, None)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_definition_can_be_changed_without_a_change_of_the_spec(dialect: Dialect) -> None:
    before = LOOK.to_json()

    schema_in(by_name(dialect, LOOK)["look"])["properties"]["n"]["type"] = "string"

    assert LOOK.to_json() == before


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_empty_description_is_left_out_because_some_refuse_it(dialect: Dialect) -> None:
    assert "description" not in by_name(dialect, spec(description=" \n"))["pay"]


@pytest.mark.parametrize(
    ("name", "refusing"),
    [
        ("billing.pay", {"openai-responses", "openai-chat", "anthropic", "bedrock-converse"}),
        ("7zip", {"google-generate", "google-interactions"}),
        ("pay-now", set()),
    ],
)
def test_a_name_that_a_provider_refuses_is_refused_with_the_way_out(name: str, refusing: set[str]) -> None:
    refused = {dialect: described([spec(name)], dialect).notes for dialect in DIALECTS}

    assert {dialect for dialect, notes in refused.items() if any(note.refused for note in notes)} == refusing
    for dialect in refusing:
        with pytest.raises(ToolNotOffered, match=f"tool {name}: its name is refused: .*register it under another one"):
            offered([spec(name)], dialect)


def test_names_that_a_provider_does_not_document_are_told() -> None:
    assert notes("cohere", spec("pay-now", "read")) == [
        "pay-now: its name may be refused: a name there is documented as letters, digits and '_', no digit first"
    ]
    assert notes("cohere", spec("pay_now", "read")) == []


def test_an_argument_whose_name_anthropic_refuses_is_refused() -> None:
    of = spec(schema={"type": "object", "properties": {"größe": {"type": "integer"}}})

    with pytest.raises(ToolNotOffered, match="argument 'größe' is refused"):
        offered([of], "anthropic")
    assert offered([of], "openai-chat")


def test_a_refused_tool_has_a_note_and_no_entry_where_all_tools_are_only_described() -> None:
    found = described([spec("a.b"), LOOK], "anthropic")

    assert [entry["name"] for entry in found] == ["look"]
    assert [(note.tool, note.refused) for note in found.notes] == [("a.b", True)]
    assert found.unordered == ()


def test_a_description_is_cut_to_what_chat_completions_take() -> None:
    of = spec(description="word " * 400, effect="read", schema=SCHEMA)

    cut = by_name("openai-chat", of)["pay"]["description"]

    assert len(cut) <= 1024
    assert cut.endswith("word...")
    assert notes("openai-chat", of) == ["pay: its description of 1,999 characters is cut to 1,024"]
    assert len(by_name("openai-responses", of)["pay"]["description"]) == 1_999


def test_a_choice_at_the_root_becomes_one_object_where_that_is_refused() -> None:
    of = SPECS["root_choice"]

    schema = schema_in(by_name("anthropic", of)["root_choice"])

    assert schema["properties"] == {
        "id": {"type": "string"},
        "by": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "of": {},
    }
    assert schema["required"] == ["id"]
    assert "oneOf at the root" in notes("anthropic", of)[0]
    assert schema_in(by_name("cohere", of)["root_choice"])["oneOf"], "it stays where it is taken"


def test_what_all_parts_of_a_root_require_stays_required() -> None:
    assert schema_in(by_name("openai-chat", SPECS["root_all"])["root_all"])["required"] == ["a", "b"]


@pytest.mark.parametrize("dialect", ["google-generate", "google-interactions", "bedrock-converse", "ollama", "cohere"])
def test_references_are_replaced_where_a_provider_refuses_or_hides_them(dialect: Dialect) -> None:
    nested, tree = (json.dumps(by_name(dialect, SPECS[name])[name]) for name in ("nested", "recursive"))

    assert "$ref" not in nested
    assert "$defs" not in nested
    assert nested.count('"zip_code"') == 2, "both addresses are spelt out"
    assert tree.count('"$defs"') == 1, "what leads back to itself cannot be"


def test_a_bound_beside_a_reference_is_no_replacement_of_the_bound_that_it_leads_to() -> None:
    schema = schema_in(by_name("google-generate", SPECS["beside_reference"])["beside_reference"])

    assert validate(schema, {"n": 5}) is None
    assert validate(schema, {"n": 7}) is not None


def test_a_schema_whose_references_multiply_keeps_them() -> None:
    levels = {f"L{at}": {"type": "array", "prefixItems": [{"$ref": f"#/$defs/L{at + 1}"}] * 2} for at in range(30)}
    of = spec(schema={"type": "object", "properties": {"x": {"$ref": "#/$defs/L0"}}, "$defs": {**levels, "L30": {}}})

    assert len(json.dumps(offered([of], "google-generate"))) < 10_000


def test_a_choice_of_plain_types_is_a_list_of_types_for_ollama() -> None:
    properties = schema_in(by_name("ollama", SPECS["optional"])["optional"])["properties"]

    assert properties["note"]["type"] == ["string", "null"]
    assert [note for note in notes("ollama", SPECS["optional"]) if "note" in note] == []
    assert any("'tags' has parts of its own" in note for note in notes("ollama", SPECS["optional"]))


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses"])
def test_an_array_says_what_its_items_are_where_openai_asks_for_it(dialect: Dialect) -> None:
    assert schema_in(by_name(dialect, SPECS["untyped"])["untyped"])["properties"]["a"] == {"type": "array", "items": {}}


def test_each_tool_is_strict_or_it_is_said_why_not() -> None:
    named = by_name("openai-responses", *SPECS.values())
    told = {note.split(":")[0]: note for note in notes("openai-responses", *SPECS.values()) if "not strict" in note}

    assert {name for name, function in named.items() if function["strict"]} == {"plain", "nothing", "mint"}
    assert told.keys() == SPECS.keys() - {"plain", "nothing", "mint"}
    assert told["optional"] == "optional: not strict: $.note may be left out"
    assert told["open_ended"] == "open_ended: not strict: $ takes members that it does not name"


def test_a_tool_that_is_not_strict_says_so_in_responses_and_is_silent_in_chat() -> None:
    assert by_name("openai-responses", PAY)["pay"]["strict"] is False
    assert "strict" not in by_name("openai-chat", PAY)["pay"]


SEALED = {"$sealed": "token"}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_secret_argument_takes_the_sealed_value_that_another_tool_returns(dialect: Dialect) -> None:
    together = schema_in(by_name(dialect, SPECS["mint"], SPECS["sign_in"])["sign_in"])
    alone = schema_in(by_name(dialect, SPECS["sign_in"])["sign_in"])

    assert validate(together, {"token": SEALED}) is None
    assert validate(together, {"token": "clear"}) is None
    assert validate(together, {"user": SEALED}) is not None
    assert together["properties"]["token"]["description"] == "A key of mint."
    assert validate(alone, {"token": SEALED}) is not None, "no tool returns one"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_default_of_a_secret_argument_is_in_no_definition(dialect: Dialect) -> None:
    """The spec is published, and its schema goes to the provider."""
    assert "sk-default" not in json.dumps(offered(SPECS.values(), dialect))
    assert "sk-default" not in SPECS["sign_in"].to_json()
    assert '"me"' in SPECS["sign_in"].to_json(), "other defaults stay"


OPTIONS: dict[Dialect, dict[str, Any]] = {
    "openai-responses": {"parallel_tool_calls": False},
    "openai-chat": {"parallel_tool_calls": False},
    "anthropic": {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_parallel_calls_are_forbidden_where_a_tool_needs_it_and_the_provider_can(dialect: Dialect) -> None:
    free, bound = offered([LOOK], dialect), offered([LOOK, PAY], dialect)

    assert (free.options, free.unordered) == ({}, ())
    assert bound.unordered == ("pay",)
    assert bound.options == OPTIONS.get(dialect, {})
    told = [note.text for note in bound.notes if "parallel" in note.text]
    assert [("ordered=True" in text) for text in told] == ([] if dialect in OPTIONS else [True])


@pytest.mark.parametrize(
    ("declared", "needs"),
    [({}, True), ({"effect": Effect.READ}, False), ({"effect": Effect.IDEMPOTENT}, False),
     ({"concurrency": 1}, False), ({"concurrency": 2}, True), ({"order_by": ("n",)}, False)],
)  # fmt: skip
def test_what_needs_one_call_at_a_time_is_what_the_audit_says(declared: dict[str, Any], needs: bool) -> None:
    of = ToolSpec("pay", schema=SCHEMA, **declared)

    assert of.parallel_safe is not needs
    assert offered([of], "openai-chat").unordered == (("pay",) if needs else ())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_request_gets_the_tools_after_its_own_and_stays_as_it_was(dialect: Dialect) -> None:
    member, *rest = TABLE[dialect].request.TOOLS
    own: dict[str, Any] = {"model": "m", member: {"tools": ["own"], "toolChoice": {"any": {}}} if rest else ["own"]}
    before = json.dumps(own)

    body = offered([PAY], dialect).request(own)

    listed = body[member]["tools"] if rest else body[member]
    assert listed == ["own", *offered([PAY], dialect)]
    assert not rest or body[member]["toolChoice"] == {"any": {}}
    assert {name: value for name, value in body.items() if name not in ("model", member)} == OPTIONS.get(dialect, {})
    assert json.dumps(own) == before


def test_a_request_to_claude_on_bedrock_forbids_parallel_calls_in_claudes_own_words() -> None:
    body = offered([PAY], "bedrock-converse").request({"modelId": "eu.anthropic.claude-x"})

    assert body["additionalModelRequestFields"]["tool_choice"]["disable_parallel_tool_use"] is True
    assert body == forbid_parallel_calls(body, "bedrock-converse")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_without_tools_a_request_gets_neither_tools_nor_options(dialect: Dialect) -> None:
    assert offered([], dialect) == []
    assert ToolDefinitions([], dialect, unordered=["pay"]).request({"model": "m"}) == {"model": "m"}


@pytest.mark.parametrize("dialect", ["openai", "", "Anthropic", "__init__", "../cohere"])
def test_an_unknown_dialect_is_refused(dialect: str) -> None:
    with pytest.raises(UnknownDialect, match="use one of openai-responses"):
        offered([LOOK], dialect)
    with pytest.raises(UnknownDialect):
        tools.definitions(dialect)  # type: ignore[arg-type]


def test_a_registry_gives_what_its_published_tools_would_give() -> None:
    published = [ToolSpec.from_json(one.to_json()) for one in tools.specs()]

    for dialect in DIALECTS:
        assert tools.definitions(dialect) == offered(published, dialect)


def test_arguments_stand_in_the_order_of_the_authors_signature_also_once_they_are_published() -> None:
    of = ToolSpec.from_json(SPECS["sign_in"].to_json())

    for dialect in DIALECTS:
        assert list(schema_in(by_name(dialect, of)["sign_in"])["properties"]) == ["token", "user"]
        assert list(schema_in(by_name(dialect, SPECS["plain"])["plain"])["properties"]) == ["city", "days"]
    assert list(ToolSpec.from_json(SPECS["optional"].to_json()).schema["properties"]) == [
        "cents", "note", "tags", "rate",
    ]  # fmt: skip


def test_the_error_of_a_tool_that_is_not_offered_is_caught_as_any_other_of_that_kind() -> None:
    assert issubclass(ToolNotOffered, NotOffered)
