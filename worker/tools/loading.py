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
    if (here := os.getcwd()) not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        why = f"importing {module_name} fails: {_where(error)}"
        if isinstance(error, ModuleNotFoundError) and f"{module_name}.".startswith(f"{error.name}."):
            why = f"no module {error.name!r} in {here} or on Python's path"
        raise ToolsNotLoaded(f"--tools {place!r}: {why}") from error
    found = getattr(module, attribute, None)
    if not isinstance(found, Registry):
        what = "nothing" if found is None else f"a {type(found).__name__}"
        raise ToolsNotLoaded(f"--tools {place!r}: {module_name} has {what} under {attribute!r}, not a Registry")
    if not len(found):
        raise ToolsNotLoaded(f"--tools {place!r}: this registry holds no tools; decorate one with @{attribute}.tool")
    return found


def _where(error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    text = " ".join(str(error).split()) or "no message"
    return f"{type(error).__name__}: {text} ({os.path.basename(last.filename)}:{last.lineno})"
