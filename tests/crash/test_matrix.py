"""The crash matrix: each cell is an experiment with real processes and a server of its own.

The cells of a run go side by side; each test waits for its own. `make matrix` tries all of them and writes the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from _pytest.mark.structures import ParameterSet

from tests.support.crash import runner as crash_runner
from tests.support.crash.cells import EXPECTED, Cell, cells, is_common
from tests.support.crash.process_starter import ProcessStarter
from tests.support.crash.runner import Found

SIDE_BY_SIDE = 6
Experiments = dict[Cell, "Future[Found]"]


def _parameters() -> list[ParameterSet]:
    return [pytest.param(cell, id=cell.name, marks=[] if is_common(cell) else [pytest.mark.matrix]) for cell in cells()]


@pytest.fixture(scope="module")
def experiments(
    request: pytest.FixtureRequest, starter: ProcessStarter, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Experiments]:
    """The experiments of this run, all of them under way."""
    functions = [item for item in request.session.items if isinstance(item, pytest.Function)]
    callspecs = [getattr(item, "callspec", None) for item in functions if item.path == request.path]
    chosen: list[Cell] = [callspec.params["cell"] for callspec in callspecs if callspec]
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:

        def start(cell: Cell) -> Future[Found]:
            return pool.submit(crash_runner.run, cell, starter, tmp_path_factory.mktemp("cell"))

        yield {cell: start(cell) for cell in chosen}
        pool.shutdown(cancel_futures=True)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("cell", _parameters())
def test_a_call_comes_to_rest_as_its_kind_allows(experiments: Experiments, cell: Cell) -> None:
    found = experiments[cell].result()

    assert found.rest.code == EXPECTED[cell].code, found.history


def test_every_cell_of_the_matrix_has_an_expectation_and_no_mutating_effect_is_ever_expected_twice() -> None:
    assert set(EXPECTED) == set(cells())
    assert all(rest.effects <= 1 for rest in EXPECTED.values())
