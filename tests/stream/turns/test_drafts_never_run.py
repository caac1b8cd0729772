"""A draft is a view. Nothing that admits calls takes one."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from toolonce.stream import ArgumentsDraft, CallComplete, CallDropped, CallOpened, Draft, TextDraft, TurnEnded
from toolonce.stream.harness.submission import asked, asked_of

DRAFTS: list[Any] = [
    TextDraft("x"),
    CallOpened(0, "f", "c1"),
    ArgumentsDraft(0, "{}", ["{}"], 1),
    CallComplete(0, "f", "c1"),
    CallDropped(0, "f", "c1", "truncated"),
    TurnEnded("completed"),
]


def test_every_kind_of_draft_is_tried() -> None:
    assert {type(draft) for draft in DRAFTS} == set(get_args(Draft))


@pytest.mark.parametrize("draft", DRAFTS, ids=lambda draft: type(draft).__name__)
def test_no_draft_can_be_submitted(draft: Any) -> None:
    with pytest.raises(TypeError, match=type(draft).__name__):
        asked_of(draft)
    with pytest.raises(TypeError, match=type(draft).__name__):
        asked(draft)
