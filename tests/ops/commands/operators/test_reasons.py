"""The reason that an operator gives is stored as text, without the secrets of the call where keys are configured."""

from __future__ import annotations

import json
import os

import pytest

from tests.support.processes.command_line import CommandLine
from tests.support.store.live_store import LiveScene
from tests.support.store.scene import spec
from toolonce.store.model.keyring import VARIABLE, Keyring
from toolonce.store.model.outcomes import Failure
from toolonce.store.model.sealing import Sealer
from toolonce.store.model.states import State
from toolonce.store.operations.operators import Actor, Expected, resolve

KEYS = "a key of sixteen or more"
HALF, WHOLE = os.fsdecode(b"see \xff.txt"), "see \ufffd.txt"


def unknown_with_secret(scene: LiveScene) -> str:
    """A call in doubt that was sealed with `KEYS`; its key."""
    tool = spec(secret=("token",))
    sealed = Sealer(Keyring.parse(KEYS), "acme", tool.name).seal_arguments({"token": "hunter2-and-3"}, ["token"])
    run = scene.unknown(
        "a", arguments=sealed, of=tool, tenant="acme", secret=True, key_id=Keyring.parse(KEYS).newest_id
    )
    return run.call


@pytest.mark.parametrize("said", [("--failed", "no hunter2-and-3"), ("--succeeded", '{"with": "hunter2-and-3"}')])
def test_an_operator_who_repeats_a_secret_stores_none(
    scene: LiveScene, toolonce: CommandLine, monkeypatch: pytest.MonkeyPatch, said: tuple[str, str]
) -> None:
    """faults 1: copied from the log of the system behind."""
    monkeypatch.setenv(VARIABLE, KEYS)
    key = unknown_with_secret(scene)

    done = toolonce("resolve", key, *said, "--reason", "the log says hunter2-and-3")

    assert done.code == 0
    record = scene.record(key)
    assert "hunter2" not in str(record.fields) + str(record.history)
    assert record.history[-1]["reason"] == "the log says ***"


def test_words_of_a_program_that_are_no_utf_8_are_stored_with_a_mark_in_their_place(scene: LiveScene) -> None:
    """faults 24: the command line refuses them, and a program hears of no error that it could not have foreseen."""
    run = scene.unknown("a")
    space = scene.live.connection.space

    scene.live.connection.run(
        resolve(space, Expected(run.call, State.UNKNOWN, run.fence), Failure("resolved", HALF), Actor(HALF, HALF, HALF))
    )

    record = scene.record(run.call)
    assert record.failure
    assert record.failure.message == WHOLE
    assert record.history[-1]["reason"] == WHOLE
    assert Actor(HALF, HALF, HALF) == Actor(WHOLE, WHOLE, WHOLE)


def test_a_value_with_half_of_a_pair_can_be_told_to_a_model(scene: LiveScene, toolonce: CommandLine) -> None:
    """faults 24"""
    key = scene.unknown("a").call

    assert toolonce("resolve", key, "--succeeded", r'{"name": "\ud800"}', "--reason", "r").code == 0

    assert json.loads(scene.record(key).fields.result) == {"name": "\ufffd"}
