"""Reads what a server reports about itself: INFO as a mapping, and single settings.

Decides how replies are read, not what they mean: that is for `durability`, `memory_watermark` and the doctor to say.
"""

from __future__ import annotations

from redis.exceptions import ResponseError

from .connection import Connection, Link


def read_info(connection: Connection | Link, *sections: str) -> dict[str, str]:
    """INFO, all of it or some sections, as name -> text.

    Raises:
        StoreUnavailable: the server does not answer.
        ResponseError: it does not let us ask.
    """
    return parse_info(connection.command("INFO", *sections))


def parse_info(reply: bytes) -> dict[str, str]:
    """The same from INFO's reply."""
    lines = reply.decode("utf-8", "replace").splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


def read_config(connection: Connection, name: str) -> str | None:
    """One setting; None where the server does not let us ask, or does not know it."""
    try:
        reply = connection.command("CONFIG", "GET", name)
    except ResponseError:
        return None
    pairs = reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2], strict=True))
    found = pairs.get(name.encode())
    return found.decode() if isinstance(found, bytes) else None
