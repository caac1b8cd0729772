"""A result that cannot be stored as it is, is a success all the same: the effect has happened."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.processes.workers import Site
from toolonce.store.model.outcomes import Outcome
from toolonce.store.model.states import State
from toolonce.worker import Registry, ToolError

LIMIT = 1_000_000
entered: list[str] = []
tools = Registry()


class _Unprintable(ToolError):
    def __str__(self) -> str:
        raise ValueError("not even this works")

    def __reduce__(self) -> Any:
        raise ValueError("and this does not either")


@tools.tool(effect="mutating")
def long_text(size: int) -> str:
    """Return as much text as takes so many bytes of JSON."""
    entered.append(f"long {size}")
    return "x" * (size - 2)


@tools.tool(effect="mutating")
def odd(what: str) -> Any:
    """Return what is not JSON."""
    entered.append(what)
    loop: list[Any] = []
    loop.append(loop)
    values: dict[str, Any] = {
        "set": {"a"},
        "bytes": b"\xff\x00",
        "nan": float("nan"),
        "loop": loop,
        "object": object(),
        "date": datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC),
    }
    if what == "open file":
        with open(__file__, encoding="utf-8") as file:
            return {"file": file}
    return values[what]


@tools.tool(effect="mutating")
def raise_unprintable(what: str) -> None:
    """Raise what cannot be written down."""
    entered.append(what)
    raise _Unprintable("lost words")


@pytest.fixture(scope="module")
def busy(redis_server: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    site = Site(redis_server.url, f"results-{tmp_path_factory.mktemp('n').name}", tmp_path_factory.mktemp("site"))
    with site.worker_here(tools):
        yield site
    site.close()


def _twice(site: Site, tool: str, turn_id: str, **arguments: Any) -> Outcome:
    """Submit, wait, submit again: the replay."""
    key = site.submit(tool, turn_id=turn_id, **arguments)
    site.wait_for(key, State.SUCCEEDED, State.FAILED, timeout=30)
    return site.submit_outcomes([(tool, arguments)], turn_id=turn_id)[0]


@pytest.mark.parametrize("size", [LIMIT, LIMIT + 1, 64 * LIMIT])
def test_a_result_above_the_limit_is_a_success_with_its_true_size_and_digest(busy: Site, size: int) -> None:
    """O3-08, at the limit, one byte above it and far above it."""
    outcome = _twice(busy, "long_text", f"long-{size}", size=size)

    whole = json.dumps("x" * (size - 2)).encode()
    assert outcome.state is State.SUCCEEDED
    assert entered.count(f"long {size}") == 1
    if size == LIMIT:
        assert outcome.marks == {}
        assert len(outcome.value) == size - 2
    else:
        assert outcome.marks == {"truncated": True, "size": size, "sha256": hashlib.sha256(whole).hexdigest()}
        assert whole.decode()[1:].startswith(outcome.value[:1000])
        assert len(outcome.value) <= LIMIT


@pytest.mark.parametrize("what", ["set", "bytes", "nan", "loop", "object", "open file"])
def test_a_result_that_is_no_json_is_a_success_with_a_mark(busy: Site, what: str) -> None:
    """O3-09."""
    outcome = _twice(busy, "odd", f"odd-{what}", what=what)

    assert outcome.state is State.SUCCEEDED
    assert outcome.marks == {"lossy": True}
    assert outcome.value is not None
    assert entered.count(what) == 1


def test_a_time_has_a_form_of_its_own(busy: Site) -> None:
    outcome = _twice(busy, "odd", "odd-date", what="date")

    assert outcome.value == "2026-01-02T00:00:00Z"
    assert outcome.marks == {}


def test_a_failure_that_cannot_be_written_down_is_still_a_failure(busy: Site) -> None:
    """O3-09: the exception's own words fail."""
    outcome = _twice(busy, "raise_unprintable", "unprintable", what="unprintable")

    assert outcome.state is State.FAILED
    assert outcome.failure
    assert outcome.failure.message
    assert entered.count("unprintable") == 1
