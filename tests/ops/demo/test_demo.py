"""The demo: everything comes out right, and nothing stays behind however it ends."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.support.processes.processes import Child
from tests.support.wait import wait_until

DATA = Path(__file__).parents[2] / "data" / "conformance"


def start(*words: str, tmp: Path) -> Child:
    return Child.python("-m", "toolonce.ops", "demo", *words, env={"TMPDIR": str(tmp)})


def leftovers(tmp: Path) -> list[str]:
    """Processes that name the demo's folder, and files and sockets in it."""
    processes = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            processes += _named(entry, str(tmp))
    # os.walk passes over a folder that goes away meanwhile; rglob fails.
    return processes + [f"{folder}/{name}" for folder, _, names in os.walk(tmp) for name in names]


def _named(entry: Path, word: str) -> list[str]:
    try:
        line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return []
    return [line] if word in line else []


@pytest.fixture
def tmp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short path: sockets have to fit."""
    return tmp_path_factory.mktemp("d")


def test_every_claim_of_the_demo_comes_true_and_nothing_stays_behind(tmp: Path) -> None:
    with start(tmp=tmp) as demo:
        code = demo.wait(90)

        assert code == 0, demo.output
    assert "NOT" not in demo.output
    assert "truncated, so none of its calls ran" in demo.output
    assert "the payment was made once" in demo.output
    assert "is succeeded" in demo.output
    wait_until(lambda: not leftovers(tmp), description="server, worker and files are gone")


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_a_demo_that_is_stopped_in_the_middle_leaves_nothing_running_and_no_folder_of_its_own(
    tmp: Path, ending: signal.Signals
) -> None:
    with start(tmp=tmp) as demo:
        demo.wait_for_line("queued")
        demo.signal(ending)
        code = demo.wait(30)

        assert code in (130, -ending)
        wait_until(lambda: not [line for line in leftovers(tmp) if " " in line], description="no process is left")
        shared = f"toolonce-{os.getuid()}"  # where sockets of all our servers lie
        wait_until(lambda: set(os.listdir(tmp)) <= {shared}, description="its folders are deleted")
        assert "Traceback" not in demo.output


def test_any_recorded_stream_runs_with_tools_made_up_for_it(tmp: Path) -> None:
    files = [str(DATA / name) for name in ("anthropic/anth_bigint.sse", "openai-responses/resp_custom_tool.sse")]
    with start(*files, tmp=tmp) as demo:
        code = demo.wait(60)

    assert code == 0, demo.output
    assert demo.output.count("every call came to rest with one answer") == 2


def test_a_file_of_no_known_dialect_is_refused_before_anything_starts(tmp: Path) -> None:
    path = tmp / "turn.sse"
    path.write_text("hello")
    with start(str(path), tmp=tmp) as demo:
        code = demo.wait(30)

    assert code == 2
    assert len(demo.lines) == 1
