"""Google's two dialects: parts and pieces of arguments, steps and statuses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.stream.feeding import Frame, decoded, short


def parts(*content: Frame, finish: str | None = None, index: int | None = 0) -> Frame:
    candidate = {"index": index, "content": {"role": "model", "parts": list(content)}, "finishReason": finish}
    return {"responseId": "r1", "candidates": [candidate]}


def piece(*values: Frame, more: bool = True, **about: Any) -> Frame:
    return {"functionCall": {**about, "partialArgs": list(values), **({"willContinue": True} if more else {})}}


def text(path: str, value: str, more: bool = False) -> Frame:
    return {"jsonPath": path, "stringValue": value, **({"willContinue": True} if more else {})}


OPEN: Frame = {"functionCall": {"name": "f", "willContinue": True}}
CLOSE: Frame = {"functionCall": {}}
STOP = parts({"text": ""}, finish="STOP")


def generate(*content: Frame) -> tuple[Any, ...]:
    return short(decoded("google-generate", *(parts(part) for part in content), STOP))


def test_arguments_in_pieces_follow_their_paths() -> None:
    values = [
        text("$.a['b c'][0].d", "x", more=True),
        text("$.a['b c'][0].d", "y"),
        {"jsonPath": "$.a['b c'][1]", "boolValue": False},
        {"jsonPath": '$["q\\"\\u00e9"]', "nullValue": None},
        {"jsonPath": "$[ 'n' ]", "numberValue": 3.0},
        {"jsonPath": "$.h", "numberValue": 9007199254740993},
    ]

    want = {"a": {"b c": [{"d": "xy"}, False]}, 'q"é': None, "n": 3, "h": 9007199254740992.0}
    assert generate(OPEN, piece(*values), CLOSE) == ("completed", [("f", None, want)], [])


@pytest.mark.parametrize(
    "values",
    [
        [text("$.a", "x"), text("$.a", "y")],
        [text("$.a", "x", more=True)],
        [text("$.a[1]", "x")],
        [text("$.a", "x"), text("$.a.b", "y")],
        [text("$.a.b", "x"), text("$.a", "y")],
        [text("$.a[0]", "x"), text("$.a.b", "y")],
        [text("$", "x")],
        [text("a", "x")],
        [text("$.*", "x")],
        [text("$..a", "x")],
        [text("$.a[-1]", "x")],
        [text("$.a[0:1]", "x")],
        [text("$[0]", "x")],
        [{"stringValue": "x"}],
        [{"jsonPath": "$.a"}],
        [{"jsonPath": "$.a", "numberValue": "3"}],
    ],
)
def test_pieces_that_make_no_object_are_malformed(values: list[Frame]) -> None:
    assert generate(OPEN, piece(*values), CLOSE)[0] == "malformed"


def test_a_number_in_pieces_that_is_not_finite_spoils_its_call() -> None:
    assert generate(OPEN, piece({"jsonPath": "$.a", "numberValue": "NaN"}), CLOSE)[2] == [("f", "non_finite")]
    assert generate(OPEN, piece({"jsonPath": "$.a", "numberValue": 10**400}), CLOSE)[2] == [("f", "non_finite")]


def test_a_call_in_pieces_may_end_in_both_ways_at_once() -> None:
    last = piece(text("$.a", "x"), more=False)

    assert generate(OPEN, last, CLOSE) == ("completed", [("f", None, {"a": "x"})], [])
    assert generate(OPEN, last) == ("completed", [("f", None, {"a": "x"})], [])
    assert generate(OPEN, last, CLOSE, CLOSE)[0] == "malformed"


def test_a_call_that_waits_for_more_at_the_end_is_malformed() -> None:
    assert generate(OPEN)[0] == "malformed"
    assert generate(OPEN, OPEN, CLOSE)[0] == "malformed"


def test_a_call_in_pieces_without_any_piece_is_the_empty_object() -> None:
    assert generate(OPEN, CLOSE) == ("completed", [("f", None, {})], [])


def test_pieces_with_an_id_go_to_the_call_of_that_id() -> None:
    first, second = {**OPEN["functionCall"], "id": "1"}, {**OPEN["functionCall"], "id": "2"}
    mixed = (
        {"functionCall": first},
        {"functionCall": second},
        piece(text("$.a", "x"), more=False, id="1"),
        piece(text("$.a", "y"), more=False, id="2"),
    )

    assert generate(*mixed)[1] == [("f", "1", {"a": "x"}), ("f", "2", {"a": "y"})]


def test_whole_arguments_beside_pieces_are_malformed() -> None:
    opened = {"functionCall": {"name": "f", "args": {"a": 1}, "willContinue": True}}

    assert generate(opened, piece(text("$.b", "x"), more=False))[0] == "malformed"
    assert generate(opened, CLOSE) == ("completed", [("f", None, {"a": 1})], [])


def test_a_call_without_a_name_is_malformed() -> None:
    assert generate(CLOSE)[0] == "malformed"
    assert generate({"functionCall": {"args": {}}})[0] == "malformed"


def test_arguments_as_a_text_are_no_object() -> None:
    assert generate({"functionCall": {"name": "f", "args": '{"a":1}'}})[2] == [("f", "not_an_object")]


@pytest.mark.parametrize(("depth", "reason"), [(99, None), (100, "too_deep"), (5000, "too_deep")])
def test_arguments_inside_a_frame_have_the_same_depth_limit(depth: int, reason: str | None) -> None:
    frame = b'data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"x":%s}}}]}}]}\n\n'
    result = decoded("google-generate", frame % (b"[" * depth + b"]" * depth), STOP)

    assert [call.reason for call in result.rejected] == ([reason] if reason else [])
    assert len(result.calls) == (0 if reason else 1)


def test_long_integers_inside_a_frame_are_too_large() -> None:
    frame = b'data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"x":%s}}}]}}]}\n\n'

    assert short(decoded("google-generate", frame % (b"9" * 4301), STOP))[2] == [("f", "too_large")]
    assert decoded("google-generate", frame % (b"9" * 4300), STOP).calls[0].arguments == {"x": int("9" * 4300)}


@pytest.mark.parametrize(
    ("reasons", "outcome"),
    [(["STOP", "MAX_TOKENS"], "truncated"), (["IMAGE_NEW", "STOP"], "filtered"), (["stop"], "withheld"),
     (["FINISH_REASON_UNSPECIFIED"], "truncated"), (["FINISH_REASON_UNSPECIFIED", "STOP"], "completed")],
)  # fmt: skip
def test_finish_reasons(reasons: list[str], outcome: str) -> None:
    assert decoded("google-generate", *(parts(finish=reason) for reason in reasons)).outcome == outcome


def test_generate_is_released_by_the_clean_end_only() -> None:
    assert decoded("google-generate", STOP, broken=True).outcome == "aborted"


def test_signatures_go_back_with_their_parts_in_order() -> None:
    content = (
        {"text": "hm", "thought": True},
        {"text": "O"},
        {"text": "K"},
        {**OPEN, "thoughtSignature": "s1"},
        piece(text("$.a", "x")),
        CLOSE,
        {"text": "", "thoughtSignature": "s2"},
    )
    result = decoded("google-generate", *(parts(part) for part in content), STOP)

    assert result.text == "OK"
    assert result.calls[0].echo == {"thoughtSignature": "s1"}
    assert result.assistant == (
        {"text": "hm", "thought": True},
        {"text": "OK"},
        {"thoughtSignature": "s1", "functionCall": {"name": "f", "args": {"a": "x"}}},
        {"text": "", "thoughtSignature": "s2"},
    )


def step(index: object, **about: Any) -> Frame:
    return {"event_type": "step.start", "index": index, "step": about}


def grow(index: object, **about: Any) -> Frame:
    return {"event_type": "step.delta", "index": index, "delta": about}


def stop(index: object) -> Frame:
    return {"event_type": "step.stop", "index": index}


def over(status: object) -> Frame:
    return {"event_type": "interaction.completed", "interaction": {"id": "v1", "status": status}}


def call(index: int, arguments: object = "{}", **more: Any) -> list[Frame]:
    start = step(index, type="function_call", id=f"c{index}", name="f", **more)
    return [start, grow(index, type="arguments_delta", arguments=arguments), stop(index)]


def interaction(*frames: Frame, status: object = "requires_action") -> tuple[Any, ...]:
    return short(decoded("google-interactions", *frames, over(status)))


@pytest.mark.parametrize(
    ("status", "outcome"),
    [("requires_continuation", "truncated"), ("budget_exceeded", "truncated"), ("failed", "failed"),
     ("cancelled", "aborted"), ("in_progress", "withheld"), (None, "withheld"), (7, "withheld")],
)  # fmt: skip
def test_statuses(status: object, outcome: str) -> None:
    assert interaction(*call(0), status=status)[0] == outcome


def test_steps_out_of_place_are_malformed() -> None:
    assert interaction(*call(0), grow(0, type="arguments_delta", arguments=" "))[0] == "malformed"
    assert interaction(*call(0), stop(0))[0] == "malformed"
    assert interaction(*call(0), *call(0))[0] == "malformed"
    assert interaction(*call(0)[:2])[0] == "malformed"
    assert interaction(step("0", type="model_output"))[0] == "malformed"


def test_arguments_under_another_delta_type_are_malformed() -> None:
    lost = [step(0, type="function_call", id="c", name="f"), grow(0, type="new_delta", arguments='{"a":1}'), stop(0)]

    assert interaction(*lost)[0] == "malformed"


def test_steps_after_the_end_are_malformed_and_a_status_is_not() -> None:
    update = {"event_type": "interaction.status_update", "interaction_id": "v1", "status": "completed"}

    assert decoded("google-interactions", *call(0), over("requires_action"), update).outcome == "completed"
    assert decoded("google-interactions", *call(0), over("requires_action"), *call(1)).outcome == "malformed"


def test_a_status_update_is_no_terminal() -> None:
    update = {"event_type": "interaction.status_update", "interaction_id": "v1", "status": "requires_action"}
    result = decoded("google-interactions", *call(0), update)

    assert (result.outcome, result.turn_id) == ("truncated", "v1")


def test_all_steps_go_back_with_signatures_and_valid_arguments() -> None:
    frames = [
        step(0, type="thought"),
        grow(0, type="thought_signature", signature="s"),
        stop(0),
        step(1, type="model_output"),
        grow(1, type="text", text="O"),
        grow(1, type="text", text="K"),
        stop(1),
        *call(2, '{"a":1,}', signature="t"),
    ]
    result = decoded("google-interactions", *frames, over("requires_action"))

    assert result.text == "OK"
    assert result.assistant == (
        {"type": "thought", "signature": "s"},
        {"type": "model_output", "content": [{"type": "text", "text": "OK"}]},
        {"type": "function_call", "id": "c2", "name": "f", "signature": "t", "arguments": {}},
    )
