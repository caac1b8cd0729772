"""What `toolonce.stream` brings, and what it costs to import it."""

from __future__ import annotations

import sys
from subprocess import run

import pytest

import toolonce.stream as package

HEAVY = ("redis", "rq", "asyncio", "socket", "jsonschema", "pydantic", "tenacity", "toolonce.store.connections")


def test_a_program_that_only_decodes_loads_no_client_no_connection_and_no_loop() -> None:
    program = (
        "import sys\n"
        "before = set(sys.modules)\n"
        "from toolonce.stream import TurnDecoder, decode_body, detect_dialect\n"
        "TurnDecoder('anthropic').eof()\n"
        "print(*set(sys.modules) - before)\n"
    )
    done = run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    loaded = done.stdout.split()

    assert "toolonce.stream.decoding.decoder" in loaded
    assert [name for name in HEAVY if name in loaded] == []


def test_every_public_name_is_there_at_its_first_use() -> None:
    program = "from toolonce.stream import *\nprint(Client, AsyncClient, Conversation, read_turn, for_user)"
    done = run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout.count("toolonce.stream.") >= 3
    assert set(package.__all__) <= set(dir(package))
    assert all(getattr(package, name) is not None for name in package.__all__)


def test_a_misspelt_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Clients'"):
        package.Clients  # type: ignore[attr-defined]  # noqa: B018
