"""The example of three slow calls runs as it is, and shows what it says."""

from __future__ import annotations

from tests.support.processes import Child


def test_the_three_cities_are_asked_at_once() -> None:
    with Child.python("-m", "toolonce.ops.example_three_cities") as example:
        found = example.wait_for_line(r"one after the other ([\d.]+) s, at once ([\d.]+) s: Oslo.*Rome.*Lima", 60)
        assert example.wait() == 0

    assert float(found[1]) >= 1.8, "0.4 + 0.6 + 0.8"
    assert 0.8 <= float(found[2]) < float(found[1])
