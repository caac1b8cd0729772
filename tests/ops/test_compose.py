"""The compose file by the rules of the compose specification, as far as we use it, and by docker itself where it is."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from toolonce.ops.cli import build_parser
from toolonce.ops.durations import seconds

ROOT = Path(__file__).parent.parent.parent
FILE = ROOT / "docker-compose.yml"
TEXTS = {"type": "array", "items": {"type": "string"}}
SPAN = {"type": "string", "pattern": r"^\d+(ms|s|m|h)$"}
SERVICE: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "image": {"type": "string"},
        "build": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"context": {"type": "string"}, "dockerfile": {"type": "string"}},
        },
        "command": TEXTS,
        "user": {"type": "string"},
        "environment": {"type": "object", "additionalProperties": {"type": ["string", "number", "null"]}},
        "depends_on": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "properties": {
                    "condition": {"enum": ["service_started", "service_healthy", "service_completed_successfully"]}
                },
                "required": ["condition"],
            },
        },
        "volumes": TEXTS,
        "tmpfs": TEXTS,
        "expose": TEXTS,
        "cap_drop": TEXTS,
        "security_opt": TEXTS,
        "read_only": {"type": "boolean"},
        "restart": {"enum": ["no", "always", "on-failure", "unless-stopped"]},
        "stop_grace_period": SPAN,
        "healthcheck": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "test": TEXTS, "interval": SPAN, "timeout": SPAN, "start_period": SPAN, "retries": {"type": "integer"},
            },
        },
    },
    "oneOf": [{"required": ["image"]}, {"required": ["build"]}],
}  # fmt: skip
SCHEMA = {
    "type": "object",
    "properties": {"services": {"type": "object", "additionalProperties": SERVICE}, "volumes": {"type": "object"}},
    "patternProperties": {"^x-": {}},
    "additionalProperties": False,
}


def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(FILE.read_text())
    return loaded


def test_the_file_keeps_to_the_specification() -> None:
    faults = [f"{list(error.path)}: {error.message}" for error in Draft202012Validator(SCHEMA).iter_errors(compose())]

    assert faults == []


def test_every_named_volume_and_service_exists() -> None:
    loaded = compose()
    for service in loaded["services"].values():
        assert set(service.get("depends_on", {})) <= set(loaded["services"])
        named = {volume.partition(":")[0] for volume in service.get("volumes", ())}
        assert {name for name in named if name.isidentifier()} <= set(loaded["volumes"])


def test_the_worker_may_drain_before_it_is_killed() -> None:
    worker = compose()["services"]["worker"]
    grace: float = build_parser().parse_args(["work", "--tools", "a:b", *worker["command"][3:]]).grace

    assert seconds(worker["stop_grace_period"]) > grace


def test_docker_itself_accepts_the_file() -> None:
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode:
        pytest.skip("docker compose is not installed")
    subprocess.run([docker, "compose", "-f", str(FILE), "config", "--quiet"], check=True, timeout=60)
