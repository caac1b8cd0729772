"""Lets a package export names whose modules are loaded when a name is first used.

So `import toolonce.stream` alone loads no Redis client. Decides nothing about which names those are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def at_first_use(package: str, modules: Mapping[str, tuple[str, ...]]) -> Callable[[str], object]:
    """A package's ``__getattr__``: it loads the module that brings a name, and keeps what it found.

    Args:
        modules: module, relative to the package -> the names that it brings.

    Raises:
        AttributeError: by the function that is returned: none of the modules brings the name.
    """
    module_of = {name: module for module, names in modules.items() for name in names}

    def find(name: str) -> object:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(module_of[name], package), name)
        setattr(sys.modules[package], name, found)
        return found

    return find
