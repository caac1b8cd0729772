"""G8: one place knows how a secret may look in other words."""

from __future__ import annotations

import base64
import html
import json
import textwrap
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from toolonce.store.model.secret_texts import Secrets

PEM = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nSECRETMIDDLEPART\n-----END PRIVATE KEY-----\n"
SECRETS = {
    "key": "sk-plain-1234",
    "pem": PEM,
    "quotes": "pa'ss\\w\"ord-XYZZY&<7>",
    "blanks": "correct  horse\tbattery",
    "letters": "sésame öffne dich 東京",
    "long": "sk-" + "0123456789" * 12,
    "url": "postgres://bob:p%40ss w@db/x?y=1#z",
}
SPELLINGS: dict[str, Callable[[str], str]] = {
    "raw": str,
    "stripped": str.strip,
    "folded": lambda text: " ".join(text.split()),
    "no line ends": lambda text: text.replace("\n", ""),
    "windows": lambda text: text.replace("\n", "\r\n"),
    "wrapped": lambda text: "\n".join(textwrap.wrap(text, 20)),
    "repr": repr,
    "repr of repr": lambda text: repr(repr(text)),
    "ascii": ascii,
    "bytes": lambda text: repr(text.encode()),
    "json": lambda text: json.dumps(text, ensure_ascii=False),
    "ascii json": json.dumps,
    "json in json": lambda text: json.dumps(json.dumps({"key": text})),
    "json in repr": lambda text: repr(json.dumps({"key": text})),
    "url": quote,
    "url, all": lambda text: quote(text, safe=""),
    "form": quote_plus,
    "html": html.escape,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 for urls": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "basic auth": lambda text: base64.b64encode(f"bob:{text}".encode()).decode(),
    "hex": lambda text: text.encode().hex(),
    "upper hex": lambda text: text.encode().hex().upper(),
    "upper": str.upper,
    "cut off": lambda text: text[:16],
    "cut in front": lambda text: text.rstrip()[-16:],
}


def middle(text: str) -> str:
    return text[len(text) // 2 - 4 : len(text) // 2 + 4]


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("name", SECRETS)
def test_no_spelling_of_a_secret_stays_in_words(name: str, spelling: str) -> None:
    """faults 1"""
    said = SPELLINGS[spelling](SECRETS[name])

    words = Secrets.of([SECRETS[name]]).scrub(f"cannot use {said}, nor that")

    assert "***" in words
    assert middle(said) not in words
    assert words.startswith("cannot use ")
    assert words.endswith(", nor that")


def test_other_words_stay_as_they_are() -> None:
    secrets = Secrets.of([PEM, "sk-plain-1234", "4111", "hunter2", {"password": "tr0ub4dor&3"}])
    words = "Attempt 41 of 11: no key, a plain private message about hunting 2 doors; MIIE was 1234 (sk)."

    assert secrets.scrub(words) == words


def test_short_secrets_are_found_whole_and_lines_of_long_ones_each() -> None:
    """faults 1"""
    assert Secrets.of(["4111"]).scrub("pin=4111; 41 11") == "pin=***; 41 11"
    codes = Secrets.of(["ABCD-1234\nEFGH-5678\nIJKL-9012\n"])
    assert codes.scrub("used EFGH-5678 now") == "used *** now"


@pytest.mark.parametrize(
    ("secret", "value", "stored"),
    [
        (4111, {"pin": 4111}, {"pin": "***"}),
        (4111, [4111.0, -4111, 4112, True], ["***", "***", 4112, True]),
        ("4111", {"pin": 4111}, {"pin": "***"}),
        (0.25, [0.25, 0.5], ["***", 0.5]),
        (4111111111111111, [4111111111111111, 411111111111, 12], ["***", "***", 12]),
        ({"user": "bob-the-admin", "pin": [7]}, {"bob-the-admin": 7, "n": 17}, {"***": "***", "n": 17}),
    ],
)
def test_numbers_and_names_that_are_secret_are_masked(secret: Any, value: Any, stored: Any) -> None:
    """faults 1"""
    assert Secrets.of([secret]).scrub_value(value) == stored


def test_what_holds_no_secret_knows_none() -> None:
    assert not Secrets()
    assert Secrets.of([], declared=True)
    assert Secrets.of([True, None, "", " \n"]).texts == ()
    assert Secrets.of(["sk-1"]).__repr__().count("sk-1") == 0


@pytest.mark.parametrize(
    "words", ["4,111,111,111,111,234", "4.111.111.111.111.234", "4_111_111_111_111_234", "4111-1111-1111-1234"]
)
def test_a_secret_number_is_known_in_groups(words: str) -> None:
    """faults 1"""
    assert Secrets.of([4_111_111_111_111_234]).scrub(f"no {words} here") == "no *** here"


def test_a_secret_is_known_in_base32_and_in_hex_with_colons() -> None:
    """faults 1"""
    raw = b"sk-live-1234-abcd"
    words = f"{raw.hex(':')} {base64.b32encode(raw).decode()}"

    assert Secrets.of([raw.decode()]).scrub(words).strip("=") == "*** ***"


def test_a_text_that_agrees_with_a_secret_in_too_many_places_is_masked_as_a_whole() -> None:
    """faults 12: a model may choose both, and would hold the worker for hours."""
    secrets = Secrets.of(["a" * 100_000 + "b"])

    assert secrets.scrub(("a" * 12 + "c") * 50_000) == "***"
    assert secrets.scrub("nothing of it" * 50_000) == "nothing of it" * 50_000
