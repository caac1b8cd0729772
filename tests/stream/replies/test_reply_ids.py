"""Ids go out as they came wherever the target takes them, and the stand-ins for others are stable and unique."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolonce.stream.dialects.table import TABLE
from toolonce.stream.replies.call_ids import IdRule, outbound_ids

RULES: dict[str, IdRule] = {name: row.replies.IDS for name, row in TABLE.items()}
PAIRING = sorted(name for name, rule in RULES.items() if rule.pairs)
call_ids = st.lists(st.none() | st.text() | st.sampled_from(["", "call_0", "k1", "x" * 41, "a/b"]), max_size=8)


@pytest.mark.parametrize("dialect", PAIRING)
@given(ids=call_ids, turn_id=st.none() | st.text())
def test_every_call_of_a_turn_gets_an_id_that_is_taken_and_its_own(
    dialect: str, ids: list[str | None], turn_id: str | None
) -> None:
    rule = RULES[dialect]

    sent = outbound_ids(rule, turn_id, ids)

    assert len(sent) == len(set(sent)) == len(ids)
    assert all(rule.accepts(call_id) for call_id in sent)


@pytest.mark.parametrize("dialect", PAIRING)
@given(ids=call_ids)
def test_the_first_use_of_a_valid_id_passes_unchanged(dialect: str, ids: list[str | None]) -> None:
    rule = RULES[dialect]

    for position, (came, sent) in enumerate(zip(ids, outbound_ids(rule, "t", ids), strict=True)):
        if rule.accepts(came) and came not in ids[:position]:
            assert sent == came


@pytest.mark.parametrize(
    ("dialect", "longest"),
    [("openai-chat", 40), ("openai-responses", 64), ("anthropic", 128), ("google-interactions", 1400)],
)
@pytest.mark.parametrize("length", [1, 40, 41, 64, 65, 128, 129, 1400])
def test_an_id_is_replaced_only_beyond_the_targets_limit(dialect: str, longest: int, length: int) -> None:
    came = "i" * length

    (sent,) = outbound_ids(RULES[dialect], "t", [came])

    assert (sent == came) == (length <= longest)


@pytest.mark.parametrize("came", ["fn.lookup:0", "a/b", "", " ", "é", "a\n", "\ud800"])
def test_characters_that_anthropic_refuses_never_reach_it(came: str) -> None:
    (sent,) = outbound_ids(RULES["anthropic"], "t", [came])

    assert sent is not None
    assert sent.replace("_", "").isalnum()
    assert sent.isascii()


def test_ids_that_a_strict_imitator_compares_byte_for_byte_go_back_to_it_untouched() -> None:
    ids = ["functions.read:0", "functions.read:1"]

    assert outbound_ids(RULES["openai-chat"], "t", ids) == tuple(ids)


@pytest.mark.parametrize("dialect", PAIRING)
def test_ids_that_have_no_utf_8_form_stay_apart_and_become_readable(dialect: str) -> None:
    sent = outbound_ids(RULES[dialect], "t", ["a\ud800", "a\ud801"])

    assert len(set(sent)) == 2
    assert all(call_id is not None and call_id.isascii() for call_id in sent)


def test_ids_that_clean_up_to_the_same_text_stay_apart() -> None:
    sent = outbound_ids(RULES["anthropic"], "t", ["a.b", "a/b", "a_b"])

    assert len(set(sent)) == 3
    assert sent[2] == "a_b"


def test_a_missing_id_has_another_stand_in_in_every_turn_and_place() -> None:
    rule = RULES["anthropic"]

    sent = {*outbound_ids(rule, "turn_1", [None, None]), *outbound_ids(rule, "turn_2", [None, None])}

    assert len(sent) == 4


def test_a_stand_in_makes_way_for_a_real_id_of_the_same_text() -> None:
    rule = RULES["openai-chat"]
    (stand_in,) = outbound_ids(rule, "t", [None])

    first, second = outbound_ids(rule, "t", [None, stand_in])

    assert second == stand_in
    assert first != stand_in


def test_where_calls_pair_by_order_ids_pass_and_a_missing_one_stays_away() -> None:
    rule = IdRule(pairs=False)

    assert outbound_ids(rule, "t", ["same", None, "", "same"]) == ("same", None, None, "same")


def test_another_process_computes_the_same_stand_ins() -> None:
    ids: list[str | None] = [None, "x" * 41, "k", "k", "\ud800"]
    stand_ins = f"outbound_ids(IdRule(max_length=40), 't', {ids!a})"
    script = f"from toolonce.stream.replies.call_ids import *;print(ascii({stand_ins}))"

    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout

    assert printed.strip() == ascii(outbound_ids(IdRule(max_length=40), "t", ids))
