"""Numbers and equality as JSON means them: 1 and 1.0 are the same, true is not a number, a decimal is what its text
says.

A float stands for the shortest decimal text that gives it back, which is what was written in all but odd cases.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

Spend = Callable[[int], None]
"""Counts steps, and raises where there are too many."""
_EXACT_BELOW = 2.0**53
"""Below it each float that is whole is exactly that integer; above it the float and its text part ways."""
_BITS_PER_STEP = 64
_LETTERS_PER_STEP = 64
_STEPS_OF_DECIMALS = 8
_BITS_OF_DECIMALS_PER_STEP = 256
_STEPS_OF_VALUE = 3
"""For each value that is written out to be compared."""


def exact(number: float) -> int | float:
    """The number to compare with: whole floats beyond 2**53 become the integer that their text names.

    The comparison with an integer is then that of the decimal texts. NaN and infinities stay what they are.
    """
    if isinstance(number, int) or abs(number) < _EXACT_BELOW or number - number != 0:
        return number
    return int(Decimal(repr(number)))


def is_multiple(number: float, divisor: float, spend: Spend) -> bool:
    """Whether the quotient of the two decimals is whole. False for NaN and infinities."""
    if isinstance(number, int):
        spend((number.bit_length() // _BITS_PER_STEP) ** 2 // _BITS_PER_STEP)
        if isinstance(divisor, int):
            return number % divisor == 0
    elif number - number != 0:
        return False
    above, below = _ratio(number)
    divisor_above, divisor_below = _ratio(divisor)
    spend(_STEPS_OF_DECIMALS + (above.bit_length() + divisor_below.bit_length()) // _BITS_OF_DECIMALS_PER_STEP)
    return (above * divisor_below) % (below * divisor_above) == 0


def _ratio(number: float) -> tuple[int, int]:
    """The decimal that is written for a number, as a fraction."""
    return (number, 1) if isinstance(number, int) else Decimal(repr(number)).as_integer_ratio()


def canonical(value: Any, spend: Spend) -> str:
    """One text for all values that JSON holds equal, and for no others. Takes linear time (sorts names of members).

    Texts, not numbers, are compared afterwards: the hash of a text cannot be steered from outside.

    Raises:
        TypeError: not a JSON value.
        RecursionError: nested too deeply.
    """
    out: list[str] = []
    _write(value, out.append, spend)
    return "".join(out)


def _write(value: Any, put: Callable[[str], None], spend: Spend) -> None:
    match value:
        case str():
            spend(_STEPS_OF_VALUE + len(value) // _LETTERS_PER_STEP)
            put(f"s{len(value)}:{value}")
        case bool() | None:
            spend(1)
            put(f"{value}")
        case int() | float():
            whole = exact(value)
            is_whole = isinstance(whole, int) or whole.is_integer()
            spend(_STEPS_OF_VALUE + (whole.bit_length() // _BITS_PER_STEP if isinstance(whole, int) else 0))
            put(f"n{int(whole):x};" if is_whole else f"n{whole!r};")
        case list():
            spend(_STEPS_OF_VALUE)
            put("[")
            for item in value:
                _write(item, put, spend)
            put("]")
        case dict():
            spend(_STEPS_OF_VALUE + len(value))
            put("{")
            for name in sorted(value):
                _write(name, put, spend)
                _write(value[name], put, spend)
            put("}")
        case _:
            raise TypeError(f"{type(value).__name__} is not JSON")
