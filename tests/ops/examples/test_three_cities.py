"""The example of three slow calls runs as it is, and shows what it says."""

from __future__ import annotations

from tests.support.processes.processes import Child


def test_the_three_cities_are_asked_both_ways_and_both_times_are_told() -> None:
    with Child.python("-m", "toolonce.ops.examples.three_cities") as example:
        example.wait_for_line(r"one after the other [\d.]+ s, at once [\d.]+ s: Oslo.*Rome.*Lima")
        assert example.wait() == 0
