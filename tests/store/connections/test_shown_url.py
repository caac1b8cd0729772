"""A URL is shown without its password."""

from __future__ import annotations

import pytest

from toolonce.store.connections.connection import without_password


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://:s3cret@db:6379/0", "redis://***@db:6379/0"),
        ("rediss://ada:s3@cret@db", "rediss://***@db"),
        ("redis://db:6379/0", "redis://db:6379/0"),
        ("unix:///run/redis.sock?db=1", "unix:///run/redis.sock?db=1"),
    ],
)
def test_a_password_in_a_url_is_never_shown(url: str, shown: str) -> None:
    assert without_password(url) == shown
