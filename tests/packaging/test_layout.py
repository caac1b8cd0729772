"""How the repository is laid out: sizes, names, borders, and a map that does not rot."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from scripts import check_lua
from scripts.check_folders import circles
from scripts.check_lua import lint
from scripts.check_sizes import complaints, complaints_of_module
from scripts.check_words import complaints as traces
from scripts.check_words import traces_in

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGES = ("store", "stream", "worker", "ops")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
MAP = ROOT / "ARCHITECTURE.md"

# What users type (package, names). Names change only with a reason.
PUBLIC = [
    ("stream", ("AsyncClient", "Client", "TurnDecoder", "decode_body")),
    ("worker", ("Call", "DidNotHappen", "NotStarted", "Registry", "ToolError")),
]


def test_modules_and_functions_keep_their_size() -> None:
    assert list(complaints(ROOT)) == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("x = 1\n" * 301, "301 lines"),
        ("def f():\n" + "    x = 1\n" * 50, "f: 51 lines"),
        ("def f(a, b, *, c, d, e, g): ...", "6 parameters"),
        ("def f():\n for a in b:\n  if a:\n   while a:\n    try: x\n    finally: y", "nested 4 deep"),
    ],
)
def test_what_grows_too_large_is_named(text: str, complaint: str) -> None:
    assert [complaint in found for found in complaints_of_module(text, "store/x.py")] == [True]


@pytest.mark.parametrize(
    "text",
    [
        "x = 1\n" * 300,
        "class C:\n def f(self, a, b, *, c, d, e): ...",
        "def f():\n if a: x\n elif b: x\n elif c: x\n elif d: x\n else: y",
    ],
)
def test_what_is_within_its_size_is_left_alone(text: str) -> None:
    assert list(complaints_of_module(text, "store/x.py")) == []


def test_no_lua_file_is_longer_than_150_lines() -> None:
    sizes = {path.name: len(path.read_text().splitlines()) for path in (ROOT / "store" / "lua").glob("*.lua")}

    assert {name: lines for name, lines in sizes.items() if lines > 150} == {}


def test_no_machine_leaves_its_traces() -> None:
    assert list(traces(ROOT)) == []


@pytest.mark.parametrize(
    "line", ["cd /" + "home/me/x", "see /" + "root/.cache", "pip --" + "index-url x", "at 10." + "1.2.3"]
)
def test_a_trace_of_a_machine_is_found(line: str) -> None:
    assert list(traces_in(line))


@pytest.mark.parametrize("line", ["#!/usr/bin/env bash", "/srv/app", "127.0.0.1", "version 10.1.2", "docs/home/page"])
def test_what_every_machine_has_is_no_trace(line: str) -> None:
    assert not list(traces_in(line))


@pytest.mark.parametrize(
    "line",
    ["def lin" + "ger(", "class Read" + "Backs:", "worker/high" + "_water.py", "_HIGH" + "_WATER", "_still" + "_mine()",
     "the tool's read" + "-back", "class WorkerDe" + "sk:", "Read" + "-backs are"],
)  # fmt: skip
def test_a_name_that_was_given_up_is_found(line: str) -> None:
    assert list(traces_in(line))


@pytest.mark.parametrize("line", ["lingering", "it reads back equal", "a helpdesk", "shepherd", "ask later"])
def test_what_only_resembles_a_name_that_was_given_up_is_left_alone(line: str) -> None:
    assert not list(traces_in(line))


FOLDERS = sorted({path.parent for path in MODULES})


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_are_typed_and_regular(package: str) -> None:
    assert (ROOT / package / "__init__.py").is_file()
    assert (ROOT / package / "py.typed").is_file()
    assert (ROOT / ".types" / "toolonce" / package).readlink() == Path("../..") / package


def test_every_folder_of_modules_is_a_package_that_ships() -> None:
    listed = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])

    assert listed == {".".join(("toolonce", *folder.relative_to(ROOT).parts)) for folder in FOLDERS}
    assert [folder for folder in FOLDERS if not (folder / "__init__.py").is_file()] == []


def test_no_folder_holds_more_modules_than_a_reader_can_look_over() -> None:
    support = ROOT / "tests" / "support"
    shared = list(support.rglob("*.py"))
    folders = {*FOLDERS, *(path.parent for path in shared)}
    sizes = {
        folder: sum(path.parent == folder and path.name != "__init__.py" for path in (*MODULES, *shared))
        for folder in folders
    }

    assert {folder.name: size for folder, size in sizes.items() if size > 20} == {}


def test_tests_stand_in_the_folder_of_what_they_test() -> None:
    tests = [
        path.relative_to(ROOT / "tests") for name in PACKAGES for path in (ROOT / "tests" / name).rglob("test_*.py")
    ]

    assert {path.parent.as_posix() for path in tests if not (ROOT / path.parent).is_dir()} == set()
    assert {path.as_posix() for path in tests if len(path.parts) == 2} == {"ops/test_cli.py", "stream/test_package.py"}


def test_no_folder_imports_in_a_circle() -> None:
    assert list(circles(ROOT)) == []


@pytest.mark.parametrize(
    "back", ["from ..a.x import z", "from toolonce.store.a.x import z", "from toolonce.store.a import x",
             "import toolonce.store.a.x"],
)  # fmt: skip
def test_a_circle_of_folders_is_found(tmp_path: Path, back: str) -> None:
    for name, text in {"store/a/x.py": "from ..b import y", "store/b/y.py": back}.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)

    assert list(circles(tmp_path)) == ["store/a and store/b import each other: store/a/x.py, store/b/y.py"]


def test_no_module_takes_a_name_of_the_standard_library() -> None:
    assert {path.stem for path in MODULES} & sys.stdlib_module_names == set()


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_that_a_package_exports_is_there(package: str) -> None:
    module = import_module(f"toolonce.{package}")

    assert [name for name in getattr(module, "__all__", ()) if not hasattr(module, name)] == []


@pytest.mark.parametrize(("package", "names"), PUBLIC)
def test_the_names_that_users_type_are_exported(package: str, names: tuple[str, ...]) -> None:
    assert set(names) <= set(import_module(f"toolonce.{package}").__all__)


def test_the_import_borders_hold() -> None:
    checker = Path(sys.executable).with_name("lint-imports")
    ran = subprocess.run([checker, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stdout
    assert re.search(r"[1-9]\d* kept, 0 broken", ran.stdout)


def contract(words: str) -> dict[str, Any]:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [found] = [each for each in contracts if words in each["name"]]
    return dict(found)


def test_no_dialect_is_left_out_of_the_border_between_them() -> None:
    folders = {f"toolonce.stream.dialects.{path.name}" for path in (ROOT / "stream" / "dialects").glob("[!_]*/")}

    assert set(contract("a dialect knows no other one")["modules"]) == folders


def test_rq_is_imported_by_the_modules_of_the_process_alone() -> None:
    """Also by no `__init__` and by no folder that the contract does not name yet."""
    importing = {path for path in MODULES if "rq" in set(_packages_imported(path))}

    assert {path.parent for path in importing} == {ROOT / "worker" / "runtime"}


def _packages_imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.partition(".")[0]


@pytest.mark.parametrize("package", ["store", "stream", "worker"])
def test_a_package_alone_loads_none_that_it_must_not_know(package: str) -> None:
    allowed = {"store": {"store"}, "stream": {"stream", "store"}, "worker": {"worker", "store"}}[package]
    code = f"import toolonce.{package}, sys; print([n for n in {PACKAGES} if 'toolonce.' + n in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert set(re.findall(r"\w+", ran.stdout)) <= allowed


def test_the_map_names_every_module_and_nothing_that_is_gone() -> None:
    text = MAP.read_text()
    named = set(re.findall(r"\b(?:worker|store|stream|ops|tests|scripts|benchmarks)/[\w/.-]*\w\.\w+", text))
    modules = {path.relative_to(ROOT).as_posix() for path in MODULES if path.name != "__init__.py"}

    assert modules - named == set(), "modules that ARCHITECTURE.md does not name"
    assert {name for name in named if not (ROOT / name).exists()} == set(), "named, but not there"


def test_the_path_from_the_queue_to_the_handler_is_at_most_15_files_that_are_there() -> None:
    _, _, path = MAP.read_text().partition("### The path of a call, file by file\n")
    listed = re.findall(r"^(\d+)\. `([\w/.]+)`", path.partition("\n### ")[0], re.MULTILINE)
    files = [file for _, file in listed]

    assert [int(number) for number, _ in listed] == [*range(1, len(listed) + 1)]
    assert 0 < len(set(files)) == len(files) <= 15
    assert [file for file in files if not (ROOT / file).is_file()] == []
    assert (files[0], files[-1]) == ("worker/runtime/slots.py", "worker/execution/invoke.py")


def test_each_file_of_that_path_is_imported_or_loaded_by_one_before_it() -> None:
    _, _, path = MAP.read_text().partition("### The path of a call, file by file\n")
    files = re.findall(r"^\d+\. `([\w/.]+)`", path.partition("\n### ")[0], re.MULTILINE)
    known: set[str] = set()
    for file in files:
        assert not known or file in known, f"nothing before {file} leads to it"
        known |= _leads_to(ROOT / file)


def _leads_to(file: Path) -> set[str]:
    """The modules that a file imports, and the scripts whose arguments it declares."""
    if file.suffix == ".lua":
        return set()
    text = file.read_text()
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom) and node.level]
    modules = [file.parents[node.level - 1].joinpath(*(node.module or "").split(".")) for node in imports]
    scripts = {f"store/lua/{name}.lua" for name in re.findall(r'@arguments_of\("(\w+)"\)', text)}
    return scripts | {f"{module.relative_to(ROOT).as_posix()}.py" for module in modules}


WRITES_OF_A_RUN = {
    "begin": "run_session", "claim": "run_session", "declare": "run_session", "defer_reconcile": "lease",
    "interrupt": "run_session", "progress": "run_session", "release": "run_session", "renew": "lease",
    "retry_later": "run_session", "retry_not_started": "run_session", "settle": "replicas",
}  # fmt: skip


def test_each_write_under_a_fence_is_sent_from_one_module() -> None:
    """G1: the session of a run sends them, with the two helpers that its head names."""
    senders = {
        (alias.name, path.stem)
        for path in (ROOT / "worker").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("operations.runs")
        for alias in node.names
        if alias.name[0].islower()
    }

    assert senders == set(WRITES_OF_A_RUN.items())
    assert [path for path in (ROOT / "worker").rglob("*.py") if _imports_whole(path, "runs")] == []


def _imports_whole(path: Path, module: str) -> bool:
    """Whether it imports a module whole, so that it can send whatever stands in there."""
    return any(
        alias.name.rpartition(".")[2] == module
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    )


def test_scripts_are_asked_for_with_declared_arguments_only() -> None:
    places = [path.relative_to(ROOT).as_posix() for path in MODULES if re.search(r"\bload\([\"']", path.read_text())]

    assert places == []


def test_lua_that_uses_a_name_nobody_defined_is_complained_about() -> None:
    luacheck = shutil.which("luacheck")
    if luacheck is None:
        pytest.skip("luacheck is not installed; `make check` asks for it")

    assert [meaning for _, _, meaning in lint(luacheck, "return undefined_name")] == [
        "accessing undefined variable 'undefined_name'"
    ]


def test_without_luacheck_the_check_fails_and_names_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")

    assert check_lua.main() == 1
    assert "apt-get install lua-check" in capsys.readouterr().out


def test_no_two_classes_of_the_project_have_one_name() -> None:
    places: dict[str, list[str]] = {}
    others = [path for folder in ("tests", "benchmarks", "scripts") for path in (ROOT / folder).rglob("*.py")]
    for path in [*MODULES, *others]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))

    assert {name: where for name, where in places.items() if len(where) > 1} == {}
