"""The compose file and the image: what they must promise without being run, and that their commands exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from toolonce.ops.cli import build_parser
from toolonce.ops.health.server_findings import COMPACT_BYTES

ROOT = Path(__file__).resolve().parent.parent.parent
DOCKERFILE = (ROOT / "ops" / "deploy" / "Dockerfile").read_text()


def with_defaults(text: str) -> str:
    """Fill in what compose takes from the environment, as if nothing were set there."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text)


COMPOSE = yaml.safe_load(with_defaults((ROOT / "docker-compose.yml").read_text()))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = [name for name, service in SERVICES.items() if "build" in service]


def test_the_store_keeps_everything_and_forgets_nothing() -> None:
    words = SERVICES["store"]["command"]
    options = dict(zip(words[1::2], words[2::2], strict=True))

    assert options["--appendonly"] == "yes"
    assert options["--appendfsync"] == "always"
    assert options["--maxmemory-policy"] == "noeviction"
    assert int(options["--hash-max-listpack-value"]) >= COMPACT_BYTES
    assert "store:/data" in SERVICES["store"]["volumes"]


def test_images_are_pinned() -> None:
    images = [service["image"] for service in SERVICES.values() if "image" in service]
    images += re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)

    assert len(images) == 2
    assert all(re.search(r":\d+\.\d+\.\d+", image) for image in images)


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_says_how_it_is_and_has_no_more_rights_than_it_needs(name: str) -> None:
    service = SERVICES[name]

    assert service["healthcheck"]["test"][0] == "CMD"
    assert service["cap_drop"] == ["ALL"]
    assert "ports" not in service
    assert service.get("user", "root") != "root" or name in OURS


def test_our_image_does_not_run_as_root() -> None:
    assert re.findall(r"^USER (\S+)", DOCKERFILE, re.MULTILINE) == ["toolonce"]


@pytest.mark.parametrize("name", OURS)
def test_our_services_wait_for_the_store_and_name_it(name: str) -> None:
    assert SERVICES[name]["depends_on"]["store"]["condition"] == "service_healthy"
    assert SERVICES[name]["environment"]["TOOLONCE_REDIS_URL"].startswith("redis://store:")


@pytest.mark.parametrize("name", OURS)
def test_every_command_exists(name: str) -> None:
    parser = build_parser()

    parser.parse_args(SERVICES[name]["command"])
    parser.parse_args(SERVICES[name]["healthcheck"]["test"][2:])


def test_the_image_copies_everything_that_the_build_reads() -> None:
    copied = {word for line in re.findall(r"^COPY (.*) \S+$", DOCKERFILE, re.MULTILINE) for word in line.split()}

    assert copied >= {"pyproject.toml", "constraints.txt", "README.md", "LICENSE", "worker", "store", "stream", "ops"}
    assert all((ROOT / name).exists() for name in copied)
