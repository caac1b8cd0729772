"""A rate: how many calls of a tool may start in a time, as people write it, as it is stored. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

_UNITS_MS = {"s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_WRITTEN = re.compile(r"([0-9]{1,6})/(s|min|h|d)\Z")


@dataclass(frozen=True, slots=True)
class Rate:
    """Starts in a time, ms."""

    calls: int
    period_ms: int

    @classmethod
    def parse(cls, text: object) -> Rate:
        """Read ``100/min``; the units are s, min, h and d.

        Raises:
            ValueError: it is not written so, or is zero.
        """
        match = _WRITTEN.match(text) if isinstance(text, str) else None
        if not match or not int(match[1]):
            raise ValueError(f"{text!r} is no rate: write calls/unit, with s, min, h or d, for example 100/min")
        return cls(int(match[1]), _UNITS_MS[match[2]])

    @classmethod
    def from_stored(cls, stored: str) -> Rate:
        """Read the stored form, ``100/60000``."""
        calls, _, period_ms = stored.partition("/")
        return cls(int(calls), int(period_ms))

    @property
    def stored(self) -> str:
        return f"{self.calls}/{self.period_ms}"

    @property
    def per_second(self) -> float:
        return self.calls * 1000 / self.period_ms

    def __str__(self) -> str:
        unit = next((unit for unit, span in _UNITS_MS.items() if span == self.period_ms), f"{self.period_ms} ms")
        return f"{self.calls}/{unit}"
