"""The wheel and an environment with it, built once for all tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.processes.installation import build_wheel, install


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built through the sdist."""
    return build_wheel(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs of a clean environment that holds the wheel."""
    return install(wheel, tmp_path_factory.mktemp("environment"))
