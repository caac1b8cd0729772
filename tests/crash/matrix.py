"""All cells of the crash matrix, and the table that the docs show.

`python -m tests.crash.matrix docs/crash-matrix.md` does every experiment, writes what was found together with the
commit it was made from, and ends with 1 where a cell is not as expected.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.support.crash import runner as crash_runner
from tests.support.crash.cells import EXPECTED, KINDS, Cell, Death, cells, is_common
from tests.support.crash.process_starter import ProcessStarter
from toolonce.store.crashpoints import NAMES

SIDE_BY_SIDE = 6
_INTRODUCTION = """\
# The crash matrix

What becomes of a tool call when something dies: measured, not promised. `make matrix` does these {number} experiments
with real processes and a real server each, and writes this file; {common} of them are part of every run of the tests.
This one was made from commit `{commit}`.

A row is the point that a process had reached, a column the kind of tool it was busy with. The first word is the state
in which the call came to rest, the number is how often its effect happened. Of a mutating tool every effect is counted;
of an idempotent one those that the other side sees, which knows the idempotency key; of a read one or none.

In each experiment a second call of the same tool had to wait for the first, in one lane and for one slot. Each cell
also means: it went on afterwards (or waits, where the first is unknown); no lease, slot, lane or pointer was left
behind; RQ's registries showed nothing false; admitted = settled + open; and a repeated submission was answered
from the store.

- `begins` is a mutating tool that says `call.begin()` before its effect; `reconcile` one that can be reconciled.
- At `before_begin` every tool said `call.begin()`; only the one that has declared it is believed to have done nothing
  before. At `before_admit` and `after_admit_reply_lost` it is the harness that dies, and another repeats its turn.
- At `after_settle` the process has the call behind in hand: it came with the end of the first. That one then comes to
  rest as the row `after_claim` says.
- In `in_recovery` a first worker had died behind the effect; what is listed happened to the one that was recovering it.
"""


def main() -> int:
    target = Path(sys.argv[1])
    found = _experiments()
    target.parent.mkdir(exist_ok=True)
    target.write_text("\n".join(_page(found)))
    wrong = [cell.name for cell, code in found.items() if code != EXPECTED[cell].code]
    print(f"{len(found) - len(wrong)} of {len(found)} cells are as expected; see {target}")
    for name in wrong:
        print(f"not as expected: {name}", file=sys.stderr)
    return 1 if wrong else 0


def _experiments() -> dict[Cell, str]:
    """Do them all; each cell's code, or `!` where something was stuck or lost."""
    with tempfile.TemporaryDirectory(prefix="toolonce-matrix-") as name:
        folder = Path(name)
        with ProcessStarter(folder) as starter, ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            return dict(pool.map(lambda cell: (cell, _experiment(cell, starter, folder / cell.name)), cells()))


def _experiment(cell: Cell, starter: ProcessStarter, folder: Path) -> str:
    folder.mkdir()
    try:
        found = crash_runner.run(cell, starter, folder)
    except AssertionError as error:
        print(f"{cell.name}: {error}", file=sys.stderr)
        return "!"
    if found.rest.code != EXPECTED[cell].code:
        print(f"{cell.name}: {found.rest.code}\n{found.history}", file=sys.stderr)
    print(f"{cell.name}: {found.rest.code}", flush=True)
    return found.rest.code


def _page(found: Mapping[Cell, str]) -> Iterator[str]:
    common = sum(is_common(cell) for cell in found)
    yield _INTRODUCTION.format(number=len(found), common=common, commit=_commit())
    for death in Death:
        yield f"## {death.value}\n"
        yield f"| | {' | '.join(KINDS)} |"
        yield f"|---|{'---|' * len(KINDS)}"
        for point in NAMES:
            words = (_words(found[Cell(point, death, kind)], Cell(point, death, kind)) for kind in KINDS)
            yield f"| `{point}` | {' | '.join(words)} |"
        yield ""


def _words(code: str, cell: Cell) -> str:
    if code != EXPECTED[cell].code:
        return f"**{code}, expected {EXPECTED[cell].code}**"
    rest = EXPECTED[cell]
    return f"{rest.state}, {rest.effects}"


def _commit() -> str:
    def git(*words: str) -> str:
        return subprocess.run(["git", *words], capture_output=True, text=True, check=True).stdout.strip()

    changed = git("status", "--porcelain", "--", "store", "stream", "worker")
    return git("rev-parse", "--short=12", "HEAD") + (" with uncommitted changes" if changed else "")


if __name__ == "__main__":
    sys.exit(main())
