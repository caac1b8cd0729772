"""Times that protect nothing are refused where they are given, wherever that is."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.processes.workers import Site
from tests.support.servers.redis_server import RealServer
from toolonce.ops.commands.run.work import keeping
from toolonce.ops.options import durations
from toolonce.store.connections.connection import Patience
from toolonce.store.model.keyring import Keyring
from toolonce.store.model.states import State
from toolonce.store.operations.recovery import Retention
from toolonce.stream.agent.terms import Terms
from toolonce.stream.provider.retry import Budget
from toolonce.worker import Registry
from toolonce.worker.runtime.preflight import check_start
from toolonce.worker.runtime.process import Options
from toolonce.worker.tools.errors import BadTool
from toolonce.worker.tools.retries import Retry

NO_TIMES = [0, -1, 0.0001, 0.0004, float("nan"), float("inf"), float("-inf"), 1e300, 10**400, True]


@pytest.mark.parametrize("option", ["timeout", "deadline", "approval_lifetime"])
@pytest.mark.parametrize("given", NO_TIMES)
def test_a_tool_with_a_time_that_cannot_be_kept_is_refused(option: str, given: Any) -> None:
    """faults 24: ``timeout=0.0001`` meant "no limit", ``approval_lifetime=0`` expired at once."""
    with pytest.raises(BadTool, match=option) as refused:
        Registry().tool(**{"name": "t", option: given})(lambda: None)

    assert "\n" not in str(refused.value)


def test_a_tool_says_in_words_that_it_has_no_run_limit() -> None:
    tools = Registry()
    tools.tool(name="t", timeout=None)(lambda: None)

    assert tools.specs()[0].timeout_ms == 0


@pytest.mark.parametrize(("option", "least"), [("timeout", "timeout_ms"), ("deadline", "deadline_ms")])
def test_a_millisecond_is_a_time(option: str, least: str) -> None:
    tools = Registry()
    short: dict[str, Any] = {option: 0.001}
    tools.tool(name="t", **short)(lambda: None)

    assert getattr(tools.specs()[0], least) == 1


@pytest.mark.parametrize("given", [float("nan"), float("inf"), -1.0])
def test_a_wait_between_attempts_that_is_no_time_is_refused(given: float) -> None:
    """faults 24."""
    with pytest.raises(BadTool, match="retry"):
        Retry(wait=lambda _state: given)  # type: ignore[arg-type]


@pytest.mark.parametrize("given", NO_TIMES)
@pytest.mark.parametrize(
    "make",
    [
        lambda given: Options(grace_s=given),
        lambda given: Options(keep_s=given),
        lambda given: check_start(Registry(), Options(lease_ms=given), Keyring()),
        lambda given: Retention(body_ms=given),
        lambda given: Retention(tombstone_ms=given),
        lambda given: Retention(states={State.FAILED: given}),
        lambda given: Budget(total_s=given),
        lambda given: Budget(idle_s=given),
        lambda given: Patience(reply=given),
    ],
)
def test_options_with_a_time_that_cannot_be_kept_are_refused(make: Callable[[Any], Any], given: Any) -> None:
    """faults 24: a grace, a lease, a retention or a patience that protects nothing."""
    with pytest.raises(ValueError, match=r"positive|negative|not a number|shorter|longer|protects nothing"):
        make(given)


@pytest.mark.parametrize("given", [-1, float("nan"), float("inf"), True])
def test_a_wait_that_is_no_time_is_refused_by_clients(redis_server: RealServer, tmp_path: Any, given: Any) -> None:
    """faults 24: nobody waits for NaN seconds; None waits forever, 0 not at all."""
    site = Site(redis_server.url, f"times-{tmp_path.name[-8:]}", tmp_path)
    try:
        site.submit("put", what="x", turn_id="t")
        for ask in (site.client.batch("t").wait, lambda t: list(site.client.batch("t").events(t))):
            with pytest.raises(ValueError, match="timeout"):
                ask(given)
        assert site.client.batch("t").wait(0)[0].state is State.QUEUED
        with pytest.raises(ValueError, match="wait_s"):
            Terms(wait_s=given)
    finally:
        site.close()


@pytest.mark.parametrize("typed", ["0", "0s", "0.0001", "0.4ms", "0.0s", "99999999d", "-1s", "nan", "inf"])
@pytest.mark.parametrize("read", [durations.milliseconds, durations.seconds, keeping])
def test_a_span_that_cannot_be_kept_is_a_usage_error(read: Callable[[str], Any], typed: str) -> None:
    """faults 24: ``--lease 0.0001``, ``--grace 0``, ``--keep 0.4ms``."""
    with pytest.raises(ArgumentTypeError):
        read(typed)


@pytest.mark.parametrize("typed", ["0.0001", "0.4ms", "99999999d"])
def test_where_no_wait_has_a_word_a_wait_too_short_to_keep_is_still_an_error(typed: str) -> None:
    """faults 24: ``--wait 0`` is documented, ``--wait 0.0001`` is a slip."""
    assert durations.seconds_or_none("0") == 0

    with pytest.raises(ArgumentTypeError):
        durations.seconds_or_none(typed)
