"""One store a project: found by the same rule for commands and clients, made by `up` alone (faults 21)."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.processes.command_line import CommandLine
from tests.support.processes.processes import Child
from tests.support.servers.redis_server import RealServer
from tests.support.store.scene import spec
from toolonce.ops.server.embedded import EmbeddedServer, ensure_server, project_server
from toolonce.ops.server.server_supervisor import kept_up
from toolonce.store.connections.connection import Connection
from toolonce.store.connections.project import FOLDER, find_project, user_folder
from toolonce.store.model.errors import StoreMisuse
from toolonce.store.operations.queries import stats
from toolonce.store.operations.tools import publish
from toolonce.stream import AsyncClient, Client, ToolCall

TOOLS = """
from toolonce.worker import Registry
tools = Registry()
@tools.tool
def pay(n: int) -> int:
    return n
"""


@pytest.fixture(autouse=True)
def _nothing_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TOOLONCE_REDIS_URL", "TOOLONCE_NAMESPACE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))


def project(folder: Path, *, repository: bool = True) -> Path:
    folder.mkdir(parents=True)
    (folder / "pyproject.toml").write_text("")
    (folder / "tools.py").write_text(TOOLS)
    if repository:
        (folder / ".git").mkdir()
    return folder


@contextmanager
def store_in(folder: Path, *tools: str) -> Iterator[EmbeddedServer]:
    (folder / FOLDER).mkdir(exist_ok=True)
    with ensure_server(folder / FOLDER / "server") as server:
        connection = Connection(server.url)
        connection.run(publish(connection.space, [spec(tool) for tool in tools or ("pay",)]))
        connection.close()
        yield server


def submitted(turn: str = "t") -> str:
    """One call by a client that names nothing; its state."""
    with Client(scope="s") as client:
        return str(client.submit_calls([ToolCall("pay", {"n": 1}, "c", "function", 0)], turn_id=turn).outcomes[0].state)


def test_the_nearest_folder_upwards_wins_over_any_pyproject(tmp_path: Path) -> None:
    outer = project(tmp_path / "repository")
    (outer / FOLDER).mkdir()
    inner = project(outer / "package", repository=False)
    deep = inner / "src" / "deep"
    deep.mkdir(parents=True)
    assert find_project(deep).folder == outer / FOLDER
    (inner / FOLDER).mkdir()
    assert find_project(deep).folder == inner / FOLDER


def test_without_a_folder_it_is_the_outermost_pyproject_inside_the_repository(tmp_path: Path) -> None:
    project(tmp_path / "outside", repository=False)
    outer = project(tmp_path / "outside" / "repository")
    inner = project(outer / "packages" / "one", repository=False)

    assert find_project(inner).folder == outer / FOLDER
    assert not find_project(inner).exists


def test_without_a_repository_it_is_the_nearest_pyproject_and_without_one_this_users_own(tmp_path: Path) -> None:
    outer = project(tmp_path / "outer", repository=False)
    inner = project(outer / "inner", repository=False)

    assert find_project(inner).folder == inner / FOLDER
    assert find_project(tmp_path).folder == user_folder()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_passed_over_with_a_warning(
    tmp_path: Path, toolonce: CommandLine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    outer = project(tmp_path / "repository")
    inner = outer / "inner"
    (inner / FOLDER).mkdir(parents=True)
    os.chown(inner / FOLDER, 12345, 12345)
    monkeypatch.chdir(inner)

    with store_in(outer):
        said = toolonce("stats", "--json", place=[])
        assert submitted() == "queued"

    assert said.code == 0
    warning = f"{inner / FOLDER} belongs to another user and is passed over"
    assert warning in " ".join(said.err.split())
    assert warning in caplog.text


def test_client_async_client_and_commands_mean_the_same_store_and_namespace(
    tmp_path: Path, toolonce: CommandLine, monkeypatch: pytest.MonkeyPatch, redis_server: RealServer, namespace: str
) -> None:
    monkeypatch.chdir(project(tmp_path / "one"))

    async def places() -> set[str]:
        with Client(scope="s") as client:
            async with AsyncClient(scope="s") as other:
                return {client._connection.place, other._connection.place}

    def told() -> str:
        return "namespace {namespace} at {url}".format(**toolonce("doctor", "--json", place=[]).json["store"])

    with store_in(Path.cwd()) as server:
        assert asyncio.run(places()) == {told()} == {f"namespace toolonce at {server.url}"}
        monkeypatch.setenv("TOOLONCE_NAMESPACE", namespace)
        assert asyncio.run(places()) == {told()} == {f"namespace {namespace} at {server.url}"}
        monkeypatch.setenv("TOOLONCE_REDIS_URL", redis_server.url)
        assert asyncio.run(places()) == {told()} == {f"namespace {namespace} at {redis_server.url}"}
        with Client(server.url, scope="s", namespace="mine") as client:
            assert client._connection.place == f"namespace mine at {server.url}"


def test_two_projects_and_a_copy_of_one_share_no_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = project(tmp_path / "one"), project(tmp_path / "two")
    with store_in(one) as first, store_in(two) as second:
        assert first.url != second.url
        shutil.copytree(one, tmp_path / "copy", ignore=shutil.ignore_patterns("*.pid"))
        for folder in (one, two):
            monkeypatch.chdir(folder)
            assert submitted() == "queued"
        for server in (first, second):
            connection = Connection(server.url)
            assert connection.run(stats(connection.space)).counts["admitted"] == 1
            connection.close()
        monkeypatch.chdir(tmp_path / "copy")
        with pytest.raises(StoreMisuse, match="is not running"):
            submitted()


@pytest.mark.parametrize(
    "command", ["stats", "calls", "doctor", "workers", "tail", "work --tools tools:tools", "consume"]
)
def test_what_only_joins_makes_nothing_and_says_how_to_start_one(
    tmp_path: Path, toolonce: CommandLine, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(project(tmp_path / "one"))
    monkeypatch.syspath_prepend(str(tmp_path / "one"))
    said = toolonce(*command.split(), place=[])

    assert said.code == 3
    assert "no store here" in said.err
    assert "toolonce up" in said.err
    assert not (tmp_path / "one" / FOLDER).exists()
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    "command",
    [
        "calls", "stats", "workers", "aborted", "cancel --state held", "retry --tool none --reason r",
        "purge --tool none --reason r", "replay --tool none", "tools list",
        "call abcdef0123", f"call {'a' * 32}", "wait --scope s none",
    ],
)  # fmt: skip
def test_whoever_finds_nothing_names_the_store(
    toolonce: CommandLine, redis_server: RealServer, namespace: str, command: str
) -> None:
    said = toolonce(*command.split())

    assert f"namespace {namespace} at {redis_server.url}" in said.err


@pytest.mark.parametrize("near", ["app", "../sibling", "../app/deep/../../sibling"])
def test_the_nearest_store_is_named_where_there_is_none_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, near: str
) -> None:
    outer = project(tmp_path / "one")
    (tmp_path / "app" / "deep").mkdir(parents=True)
    other = (outer / near).resolve()
    (other / FOLDER / "server").mkdir(parents=True)
    monkeypatch.chdir(outer)

    with pytest.raises(StoreMisuse, match=f"the nearest is {other / FOLDER}, for programs in {other}; start one"):
        Client(scope="s")


def test_a_folder_in_no_project_names_the_store_of_its_sibling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one" / FOLDER / "server").mkdir(parents=True)
    (tmp_path / "two").mkdir()
    monkeypatch.chdir(tmp_path / "two")

    with pytest.raises(StoreMisuse, match=f"the nearest is {tmp_path / 'one' / FOLDER}"):
        Client(scope="s")


def test_up_says_that_a_project_below_another_store_shares_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / FOLDER).mkdir()
    inner = project(tmp_path / "inner", repository=False)
    monkeypatch.chdir(inner)
    project_server(create=True).stop()
    assert f"which all folders below {tmp_path} share" in capsys.readouterr().err

    (inner / FOLDER).mkdir()
    project_server(create=True).stop()
    assert capsys.readouterr().err == ""


def test_a_store_that_does_not_run_is_called_so_to_clients_and_commands_alike(
    tmp_path: Path, toolonce: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project(tmp_path / "one"))
    with store_in(Path.cwd()):
        assert submitted() == "queued"

    with pytest.raises(StoreMisuse, match="is not running; start it with `toolonce up --tools tools:tools`") as raised:
        Client(scope="s")
    for command in ("stats", "calls", "doctor", "url"):
        said = toolonce(command, place=[])
        assert (said.code, said.err) == (3, f"toolonce: {raised.value}\n")
    assert ensure_server(Path(FOLDER) / "server").owned, "no command has left one running"


def test_whoever_joins_waits_for_a_server_that_is_starting_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project(tmp_path / "one"))
    monkeypatch.setattr("toolonce.store.connections.project._RESTART_S", 20.0)  # the machine may be busy
    with store_in(Path.cwd()) as server, kept_up(server):
        os.kill(server.process_id, signal.SIGKILL)
        assert submitted() == "queued"


def test_up_without_tools_serves_the_store_and_runs_nothing(tmp_path: Path, toolonce: CommandLine) -> None:
    root = project(tmp_path / "one")
    with Child.python("-m", "toolonce.ops", "up", cwd=root) as up:
        up.wait_for_line("calls wait", 40)
        up.wait_for_line("reads the inboxes", 40)
        with Child.python("-m", "toolonce.ops", "workers", cwd=root) as workers:
            workers.wait_for_line("no worker runs in namespace toolonce", 40)
        assert up.terminate() == 0


def test_url_prints_where_the_store_is_and_whose_it_is(
    tmp_path: Path, toolonce: CommandLine, monkeypatch: pytest.MonkeyPatch, redis_server: RealServer
) -> None:
    monkeypatch.chdir(project(tmp_path / "one"))
    missing = toolonce("url", place=[])
    assert (missing.code, missing.out) == (3, "")
    assert "toolonce up --tools tools:tools" in missing.err
    with store_in(Path.cwd()) as server:
        assert toolonce("url", place=[]).out == f"{server.url}\n"
        own = {"url": server.url, "namespace": "toolonce", "folder": str(Path.cwd() / FOLDER)}
        assert toolonce("url", "--json", place=[]).json == own
    named = {"url": redis_server.url, "namespace": "mine", "folder": None}
    assert toolonce("url", "--json", place=["--redis", redis_server.url, "--namespace", "mine"]).json == named


@pytest.mark.parametrize(
    "url", ["", "  ", "localhost:6379", "http://localhost", "redis://localhost:x", "redis+sentinel://h"]
)
def test_a_url_that_names_nothing_is_refused_with_the_way_out(url: str) -> None:
    with pytest.raises(StoreMisuse, match="redis://localhost:6379/0"):
        Client(url, scope="s")
    with pytest.raises(StoreMisuse, match="redis://localhost:6379/0"):
        asyncio.run(_async(url))


async def _async(url: str) -> None:
    AsyncClient(url, scope="s")


def test_a_namespace_that_cannot_be_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLONCE_NAMESPACE", "a.b")
    with pytest.raises(StoreMisuse, match=r"namespace 'a\.b'"):
        Client("redis://localhost:6379/0", scope="s")


def test_up_makes_the_projects_store_which_git_does_not_see_and_the_harness_finds(tmp_path: Path) -> None:
    """The README's first steps, without a variable."""
    root = project(tmp_path / "one", repository=False)
    subprocess.run(["git", "init", "-q", root], check=True)
    inner = root / "harness"
    inner.mkdir()
    code = (
        "from toolonce.stream import Client, ToolCall\n"
        "with Client(scope='s') as client:\n"
        "    batch = client.submit_calls([ToolCall('pay', {'n': 5}, 'c', 'function', 0)], turn_id='t')\n"
        "    print('value', batch.wait(30)[0].value)\n"
    )
    with Child.python("-m", "toolonce.ops", "up", "--tools", "tools:tools", "--log", "console", cwd=root) as up:
        up.wait_for_line("serves default", 40)
        with Child.python("-c", code, cwd=inner) as harness:
            harness.wait_for_line("value 5", 40)
        assert up.terminate() == 0

    assert (root / FOLDER / "server" / "server.json").exists()
    status = ["git", "status", "--porcelain", "-uall"]
    assert FOLDER not in subprocess.run(status, cwd=root, capture_output=True, text=True, check=True).stdout


def test_up_says_that_a_folder_in_no_project_shares_its_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """faults 21: two folders without a pyproject.toml have one store; `mkdir .toolonce` parts them."""
    loose = tmp_path / "loose"
    loose.mkdir()
    monkeypatch.chdir(loose)
    project_server(create=True).stop()
    assert "mkdir .toolonce" in capsys.readouterr().err

    (loose / FOLDER).mkdir()
    project_server(create=True).stop()
    assert "mkdir" not in capsys.readouterr().err
    assert find_project().folder == loose / FOLDER


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_a_folder_that_one_may_not_look_into_holds_no_store_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """faults 21: a service whose HOME is root's, or that runs below a closed folder, got a bare PermissionError."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_DATA_HOME", str(closed / "data"))
    os.seteuid(65534)
    try:
        assert not find_project(closed / "inner").exists
        with pytest.raises(StoreMisuse, match="no store here"):
            find_project(closed / "inner").running_url()
    finally:
        os.seteuid(0)
