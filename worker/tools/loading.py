"""Finding the registry that ``--tools package.module:name`` means. Each error is one line that says what to do."""

from __future__ import annotations

import importlib
import os
import sys
import traceback

from .errors import ToolsNotLoaded
from .registry import Registry


def load_registry(place: str) -> Registry:
    """Import a registry; the working directory is searched first.

    Raises:
        ToolsNotLoaded: no such module, its import fails, no such name, or it is not a registry or an empty one.
    """
    module_name, _, attribute = place.partition(":")
    if not module_name or not attribute:
        raise ToolsNotLoaded(f"--tools {place!r}: write it as package.module:registry, for example app.tools:tools")
    if "/" in module_name or module_name.startswith("."):
        raise ToolsNotLoaded(f"--tools {place!r}: {_way_out(module_name)}")
    if (here := os.getcwd()) not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        why = f"importing {module_name} fails: {_where(error)}"
        if isinstance(error, ModuleNotFoundError) and f"{module_name}.".startswith(f"{error.name}."):
            why = f"no module {error.name!r} in {here} or on Python's path; {_way_out(module_name)}"
        raise ToolsNotLoaded(f"--tools {place!r}: {why}") from error
    found = getattr(module, attribute, None)
    if not isinstance(found, Registry):
        what = "nothing" if found is None else f"a {type(found).__name__}"
        there = [name for name, value in vars(module).items() if isinstance(value, Registry)]
        found_there = f"; there is one under {there[0]!r}" if there else "; it needs `tools = Registry()`"
        raise ToolsNotLoaded(
            f"--tools {place!r}: {module_name} has {what} under {attribute!r}, not a Registry{found_there}"
        )
    if not len(found):
        raise ToolsNotLoaded(f"--tools {place!r}: this registry holds no tools; decorate one with @{attribute}.tool")
    return found


def _way_out(module_name: str) -> str:
    if module_name.endswith(".py") or "/" in module_name:
        written = module_name.removesuffix(".py").strip("./").replace("/", ".")
        return f"a module is named without path and .py: {written}"
    return "go to the folder of your tools, or write first ones: toolonce init"


def _where(error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    text = " ".join(str(error).split()) or "no message"
    return f"{type(error).__name__}: {text} ({os.path.basename(last.filename)}:{last.lineno})"
