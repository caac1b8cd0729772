"""The compose file by the schema of the compose specification, and by docker itself where it is."""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from toolonce.ops.cli import build_parser
from toolonce.ops.options.durations import seconds
from toolonce.store.model.specs import ToolSpec

ROOT = Path(__file__).parents[3]
FILE = ROOT / "docker-compose.yml"
SCHEMA = json.loads((files("check_jsonschema") / "builtin_schemas/vendor/compose-spec.json").read_text())


def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(FILE.read_text())
    return loaded


def faults_of(loaded: dict[str, Any]) -> list[str]:
    return [f"{list(error.path)}: {error.message}" for error in Draft202012Validator(SCHEMA).iter_errors(loaded)]


def test_the_file_keeps_to_the_specification() -> None:
    assert faults_of(compose()) == []


def test_a_word_that_compose_does_not_know_is_found() -> None:
    loaded = compose()
    loaded["services"]["worker"]["comand"] = ["work"]

    assert any("comand" in fault for fault in faults_of(loaded))


def test_every_named_volume_and_service_exists() -> None:
    loaded = compose()
    for service in loaded["services"].values():
        assert set(service.get("depends_on", {})) <= set(loaded["services"])
        named = {volume.partition(":")[0] for volume in service.get("volumes", ())}
        assert {name for name in named if name.isidentifier()} <= set(loaded["volumes"])


def test_the_worker_may_drain_before_it_is_killed() -> None:
    worker = compose()["services"]["worker"]
    grace: float = build_parser().parse_args(["work", "--tools", "a:b", *worker["command"][3:]]).grace

    assert seconds(worker["stop_grace_period"]) > grace > ToolSpec("any").timeout_ms / 1000


def test_the_worker_is_healthy_only_while_its_own_worker_gives_signs_of_life() -> None:
    """Faults 17."""
    check = compose()["services"]["worker"]["healthcheck"]["test"]

    assert check[:2] == ["CMD", "toolonce"]
    assert build_parser().parse_args(check[2:]).here


def test_docker_itself_accepts_the_file() -> None:
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode:
        pytest.skip("docker compose is not installed")
    subprocess.run([docker, "compose", "-f", str(FILE), "config", "--quiet"], check=True, timeout=60)
