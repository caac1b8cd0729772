"""What `toolonce.store`, `.stream` and `.worker` export: documented, complete, under one base of all errors."""

from __future__ import annotations

import ast
import inspect
import pickle
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import toolonce.store
from scripts import public_api
from toolonce.store import CallNotSucceeded, Failure, Outcome, State, ToolonceError
from toolonce.worker import StopAttempt, ToolOptions

PACKAGES = public_api.PACKAGES
PUBLIC = [(package, name) for package in PACKAGES for name in import_module(package).__all__]
ROOT = Path(__file__).resolve().parents[2]


def outcome(**fields: Any) -> Outcome:
    return Outcome(**{"key": "a" * 32, "idempotency_key": "i", "tool": "pay", "call_id": "c", "position": 0, **fields})


def error_classes() -> list[type[BaseException]]:
    """Every public error class of the three error trees, and those of ops."""
    modules = ("store.model.errors", "stream.turns.errors", "worker.tools.errors", "ops.errors")
    return [
        kind
        for module in modules
        for _, kind in inspect.getmembers(import_module(f"toolonce.{module}"), inspect.isclass)
        if issubclass(kind, BaseException)
    ]


@pytest.mark.parametrize(("package", "name"), PUBLIC)
def test_every_public_name_has_documentation(package: str, name: str) -> None:
    found = getattr(import_module(package), name)

    if inspect.isclass(found) or inspect.isfunction(found):  # values and type aliases have none of their own
        assert inspect.getdoc(found), f"{package}.{name} has no docstring"
        own = vars(found).get("__doc__") if inspect.isclass(found) else found.__doc__
        assert own, f"{package}.{name} has no docstring of its own"
        assert not own.startswith(f"{name}("), f"{package}.{name} has only the docstring that a dataclass makes"


@pytest.mark.parametrize(("package", "name"), PUBLIC)
def test_every_public_async_method_has_documentation(package: str, name: str) -> None:
    found = getattr(import_module(package), name)

    if inspect.isclass(found):
        methods = inspect.getmembers(found, inspect.iscoroutinefunction)
        assert [method for method, code in methods if not method.startswith("_") and not code.__doc__] == []


def test_the_page_of_public_names_is_what_the_code_exports() -> None:
    assert (ROOT / "docs" / "api.md").read_text("utf-8") == public_api.page()


def test_every_public_method_says_what_it_does() -> None:
    assert public_api.undocumented() == []


def test_every_type_that_a_public_signature_names_is_exported() -> None:
    assert public_api.unexported() == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_listed_and_can_be_loaded(package: str) -> None:
    module = import_module(package)

    assert len(set(module.__all__)) == len(module.__all__)
    assert set(module.__all__) <= set(dir(module))
    with pytest.raises(AttributeError, match="no attribute 'Clients'"):
        module.Clients  # noqa: B018


@pytest.mark.parametrize("kind", error_classes(), ids=lambda kind: kind.__qualname__)
def test_one_base_class_is_over_all_errors(kind: type[BaseException]) -> None:
    assert issubclass(kind, (ToolonceError, StopAttempt))


def test_every_public_error_can_be_imported_from_a_package() -> None:
    """Whoever names an error in an ``except`` takes it from the package, not from a module inside."""
    exported = {getattr(import_module(package), name) for package, name in PUBLIC if not name.startswith("__")
                if inspect.isclass(getattr(import_module(package), name))}  # fmt: skip
    ours = {kind for kind in error_classes() if not kind.__module__.startswith("toolonce.ops")}

    assert ours - exported == set()


@pytest.mark.parametrize("package", PACKAGES[:2])
def test_the_import_of_a_package_alone_loads_no_redis_client(package: str) -> None:
    program = f"import sys, {package}\nprint('redis' in sys.modules, 'rq' in sys.modules)"

    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)

    assert said.stdout.split() == ["False", "False"]


def test_the_version_is_that_of_the_installation() -> None:
    assert toolonce.store.__version__ == version("toolonce")


def test_a_public_name_is_the_same_object_in_every_package() -> None:
    """A name that two packages export means one thing."""
    found: dict[str, set[int]] = {}
    for package, name in PUBLIC:
        found.setdefault(name, set()).add(id(getattr(import_module(package), name)))

    assert [name for name, objects in found.items() if len(objects) > 1] == []


@pytest.mark.parametrize("value", [0, False, None, "", {"invoice": 17}])
def test_the_result_of_a_call_that_succeeded_is_given_whatever_it_is(value: object) -> None:
    assert outcome(state=State.SUCCEEDED, value=value).result_or_raise() is value


@pytest.mark.parametrize(
    "fields",
    [
        {"state": State.FAILED, "failure": Failure("tool_error", "no money")},
        {"state": State.UNKNOWN, "failure": Failure("outcome_unknown", "nobody knows")},
        {"state": State.QUEUED},
        {"state": State.SUCCEEDED, "value": 1, "conflict": True},
        {"state": State.SUCCEEDED, "marks": {"forgotten": True}},
        {"state": None, "failure": Failure("unknown_tool", "there is none")},
    ],
)
def test_a_call_without_a_result_raises_with_its_outcome(fields: dict[str, Any]) -> None:
    told = outcome(**fields)

    with pytest.raises(CallNotSucceeded) as raised:
        told.result_or_raise()

    assert raised.value.outcome is told
    again = pickle.loads(pickle.dumps(raised.value))
    assert (str(again), again.outcome) == (str(raised.value), told)


def test_every_option_of_a_tool_has_documentation_where_an_editor_shows_it() -> None:
    tree = ast.parse(inspect.getsource(ToolOptions)).body[0]
    assert isinstance(tree, ast.ClassDef)
    options = {
        node.target.id: isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        for node, after in pairwise([*tree.body, ast.Pass()])
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }

    assert options.keys() == ToolOptions.__annotations__.keys()
    assert [name for name, documented in options.items() if not documented] == []
