"""Two short partitions in every run of the tests; `make partition` makes longer ones, and more."""

from __future__ import annotations

import pytest

from tests.crash.partition import PartitionOptions, run_once


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "options",
    [
        PartitionOptions(3, "all", near=1, far=1, through="sentinel"),
        PartitionOptions(3, "all", near=0, far=2, through="direct", go_on=True),
    ],
    ids=["one-of-two-replicas-is-cut-off-with-the-primary", "workers-of-the-promoted-side-need-one"],
)
def test_a_partition_enters_no_mutating_call_twice_and_loses_none(options: PartitionOptions) -> None:
    """Faults 6."""
    counters = run_once(options)

    assert counters.entered > 0
    assert counters.is_good, counters
    assert counters.during > 0 or not options.go_on, counters
