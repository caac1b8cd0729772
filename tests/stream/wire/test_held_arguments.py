"""Arguments that a harness holds already: what is told quickly of plain ones is what is told of them in full."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from toolonce.stream.wire.arguments import check_held
from toolonce.stream.wire.limits import TurnLimits

MEMBERS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.integers(2**31 - 2, 2**31 + 2), st.floats(), st.text(), st.binary(),
    st.sampled_from(["\ud800", "é", 10**4300, object(), [1], {"a": "\udfff"}]),
)  # fmt: skip
NAMES = st.one_of(st.text(), st.sampled_from(["\ud800", "é", 1, None]))


@given(
    value=st.one_of(st.dictionaries(NAMES, MEMBERS, max_size=40), MEMBERS), kind=st.sampled_from(["function", "custom"])
)
def test_a_plain_object_is_judged_as_any_other_value_is(value: Any, kind: str) -> None:
    quick, in_full = check_held(value, kind), check_held(value, kind, TurnLimits())  # equal limits, looked at in full
    assert (quick.value, quick.came, quick.reason) == (in_full.value, in_full.came, in_full.reason) or repr(
        quick
    ) == repr(in_full)
