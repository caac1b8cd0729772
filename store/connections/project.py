"""Finds the store of a program: an argument, else TOOLONCE_* variables, else this project's own server.

Decides where this project's folder is and whether a server listens for it; the same rule for the command line and for
the clients: they join a server that runs. Makes nothing, starts nothing: that is for `toolonce up`.

The folder is the nearest ``.toolonce/`` upwards; else it would be beside the outermost pyproject.toml inside the
repository (without a repository: the nearest one); else it is this user's own. A folder of another user is passed over.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import socket
import stat
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from ..model.errors import StoreMisuse
from ..model.keys import DEFAULT_NAMESPACE

URL_VARIABLE = "TOOLONCE_REDIS_URL"
NAMESPACE_VARIABLE = "TOOLONCE_NAMESPACE"
FOLDER = ".toolonce"
DATA = "server"
SOCKET_NOTE = "socket"
"""In the data folder: where its server listens. The socket itself needs a shorter path than most folders have."""
SERVER_LOCK = "server.lock"
"""In the data folder: held as long as a server lives there, from before it listens."""
_ANSWER_S = 2.0
# `toolonce up` starts a killed server again within this time; one that is starting or loading holds its lock meanwhile.
_RESTART_S = 0.6
_START_S = 10.0
_LOOK_S = 0.02


@dataclass(frozen=True, slots=True)
class Project:
    """Where this project's store is, or would be.

    Attributes:
        folder: may not exist.
        passed_over: folders that another user owns; whoever finds a project says so.
        seen_from: the folder from which it was looked for, with those above it.
    """

    folder: Path
    passed_over: tuple[Path, ...] = ()
    seen_from: tuple[Path, ...] = ()

    @property
    def data(self) -> Path:
        """The data folder of its server."""
        return self.folder / DATA

    @property
    def exists(self) -> bool:
        """Whether this project has a store of its own already."""
        return os.path.isdir(self.data)  # and not Path.is_dir, which raises where we may not look

    @property
    def warnings(self) -> tuple[str, ...]:
        """Notes for people about the choice of this folder, one per line."""
        return tuple(f"{folder} belongs to another user and is passed over" for folder in self.passed_over)

    def missing(self) -> str:
        """The message that there is no store here, where the nearest is, and how to start one."""
        nearest = next((place for place in self._near() if place != self.folder and Project(place).exists), None)
        found = f"; the nearest is {nearest}" if nearest else ""
        if nearest and nearest.name == FOLDER:
            found += f", for programs in {nearest.parent}"
        return (
            f"no store here: {URL_VARIABLE} is not set, and nobody has started one in {self.folder}{found}; start one "
            f"with `toolonce up --tools {self._tools}`{self._first}, or name one: --redis URL, url= or {URL_VARIABLE}"
        )

    def running_url(self) -> str:
        """The URL of its server. Waits for one that is starting.

        Raises:
            StoreMisuse: there is no store here, or nobody serves it now; with the way out.
        """
        if not self.exists:
            raise StoreMisuse(self.missing())
        began = time.monotonic()
        while (path := _listening(self.data)) is None:
            if time.monotonic() > began + (_START_S if _is_held(self.data / SERVER_LOCK) else _RESTART_S):
                raise StoreMisuse(
                    f"the store in {self.folder} is not running; start it with `toolonce up --tools {self._tools}` "
                    f"(without --tools it runs no calls), or name another: --redis URL, url= or {URL_VARIABLE}"
                )
            time.sleep(_LOOK_S)
        return f"unix://{path}"

    @property
    def _tools(self) -> str:
        """The argument of --tools, as far as it can be known."""
        return "tools:tools" if self._has_tools else "MODULE:REGISTRY"

    @property
    def _first(self) -> str:
        return "" if self._has_tools else " (`toolonce init` writes first tools)"

    @property
    def _has_tools(self) -> bool:
        return bool(self.seen_from) and os.path.isfile(self.seen_from[0] / "tools.py")

    def _near(self) -> list[Path]:
        """Other places where someone may have started a store: below and beside the folder from which we look, below
        and beside this project, and this user's own."""
        found: list[Path] = []
        own = self.folder.parents[:2] if self.folder.name == FOLDER else ()
        for place in dict.fromkeys([*self.seen_from[:2], *own]):
            with suppress(OSError):
                found += sorted(place.glob(f"*/{FOLDER}"))
        return [*(place for place in found if _is_own(place)), user_folder()]


def find_project(start: Path | None = None) -> Project:
    """This project, seen from a folder: by default the current one."""
    passed: list[Path] = []
    above = _above(start)
    for folder in above:
        candidate = folder / FOLDER
        if os.path.isdir(candidate):
            if _is_own(candidate):
                return Project(candidate, tuple(passed), tuple(above))
            passed.append(candidate)
    home = _beside_pyproject(above)
    if home is not None and home / FOLDER not in passed:
        return Project(home / FOLDER, tuple(passed), tuple(above))
    return Project(user_folder(), tuple(passed), tuple(above))


def own_project(start: Path | None = None) -> Project:
    """The project that a folder is to have for itself: never one that it would share because it has none.

    That is the project around it, with a ``.toolonce/`` inside it where there is one. A folder without a pyproject.toml
    around it is a project itself.
    """
    above = _above(start)
    if not above:
        return find_project(start)
    home = _beside_pyproject(above) or above[0]
    inside = [folder / FOLDER for folder in above[: above.index(home) + 1]]
    found = next((folder for folder in inside if os.path.isdir(folder) and _is_own(folder)), home / FOLDER)
    if os.path.isdir(found) and not _is_own(found):
        return find_project(start)  # which says whose it is
    return Project(found, seen_from=tuple(above))


def user_folder() -> Path:
    """The folder of this user, for whoever is in no project."""
    return platformdirs.user_data_path("toolonce", appauthor=False)


def chosen_url(given: str | None, environment: Mapping[str, str] | None = None) -> str | None:
    """The URL that is named; None where none is, and this project's own server is meant.

    Raises:
        StoreMisuse: an empty one is given, as by a variable that was not set, or something else than a text.
    """
    if given is not None and not isinstance(given, str):
        raise StoreMisuse(f"the URL is a text or an open Connection, not {type(given).__name__}")
    if given is not None and not given.strip():
        raise StoreMisuse(
            f"the URL is empty; was a variable not set? Give one (redis://localhost:6379/0), or leave it out for "
            f"{URL_VARIABLE} or this project's own server"
        )
    return given or (os.environ if environment is None else environment).get(URL_VARIABLE) or None


def chosen_namespace(given: str | None, environment: Mapping[str, str] | None = None) -> str:
    """The namespace that is named, else the usual one."""
    if given is not None:
        return given
    return (os.environ if environment is None else environment).get(NAMESPACE_VARIABLE) or DEFAULT_NAMESPACE


def socket_name(data: Path) -> str:
    """The name of the socket for a data folder: another one in a note means that the folder is a copy."""
    return hashlib.sha256(os.fsencode(data)).hexdigest()[:12] + ".sock"


def is_private(folder: Path) -> bool:
    """Whether it is a folder of ours that nobody else may enter; a link would lead wherever its owner likes."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077


def _above(start: Path | None) -> list[Path]:
    try:
        here = start.resolve() if start else Path.cwd()
    except FileNotFoundError:  # it was removed
        return []
    return [here, *here.parents]


def _is_own(folder: Path) -> bool:
    with suppress(OSError):
        return folder.lstat().st_uid == folder.stat().st_uid == os.getuid()
    return False


def _beside_pyproject(above: list[Path]) -> Path | None:
    repository = next((at for at, folder in enumerate(above) if os.path.exists(folder / ".git")), None)
    inside = above if repository is None else above[: repository + 1]
    found = [folder for folder in inside if os.path.isfile(folder / "pyproject.toml")]
    if not found:
        return None
    return found[0] if repository is None else found[-1]


def _is_held(lock: Path) -> bool:
    """Whether a server lives. Who wants to start one in this moment asks again."""
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _listening(data: Path) -> Path | None:
    """The socket of the folder's own server, if somebody listens there."""
    data = data.resolve()
    try:
        path = Path((data / SOCKET_NOTE).read_text())
    except OSError:
        return None
    if path.name != socket_name(data) or not is_private(path.parent):
        return None
    with closing(socket.socket(socket.AF_UNIX)) as line:
        line.settimeout(_ANSWER_S)
        try:
            line.connect(str(path))
        except OSError:
            return None
    return path
