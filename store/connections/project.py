"""Finds the store of a program: an argument, else TOOLONCE_* variables, else this project's own server.

Decides where this project's folder is and whether a server listens for it; the same rule for the command line and for
the clients. Makes nothing, starts nothing: that is for `toolonce up`.

The folder is the nearest ``.toolonce/`` upwards; else it would be beside the outermost pyproject.toml inside the
repository (without a repository: the nearest one); else it is this user's own. A folder of another user is passed over.
"""

from __future__ import annotations

import hashlib
import os
import socket
import stat
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
_ANSWER_S = 2.0


@dataclass(frozen=True, slots=True)
class Project:
    """Where this project's store is, or would be.

    Attributes:
        folder: may not exist.
        passed_over: folders that another user owns; whoever finds a project says so.
    """

    folder: Path
    passed_over: tuple[Path, ...] = ()

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
        others = [place for place in _near(self.folder) if place != self.folder and Project(place).exists]
        nearest = f"; the nearest is {others[0]}" if others else ""
        return (
            f"no store here: {URL_VARIABLE} is not set, and nobody has started one in {self.folder}{nearest}; "
            f"start one with `toolonce up --tools MODULE:REGISTRY`, or name one: --redis URL, url= or {URL_VARIABLE}"
        )

    def running_url(self) -> str:
        """The URL of its server.

        Raises:
            StoreMisuse: there is no store here, or nobody serves it now; with the way out.
        """
        if not self.exists:
            raise StoreMisuse(self.missing())
        if (path := _listening(self.data)) is None:
            raise StoreMisuse(
                f"the store in {self.folder} is not running; start it with `toolonce up --tools MODULE:REGISTRY`, or "
                f"name another: url= or {URL_VARIABLE}"
            )
        return f"unix://{path}"


def find_project(start: Path | None = None) -> Project:
    """This project, seen from a folder: by default the current one."""
    passed: list[Path] = []
    above = [start.resolve(), *start.resolve().parents] if start else _above_here()
    for folder in above:
        candidate = folder / FOLDER
        if os.path.isdir(candidate):
            if _is_own(candidate):
                return Project(candidate, tuple(passed))
            passed.append(candidate)
    home = _beside_pyproject(above)
    if home is not None and home / FOLDER not in passed:
        return Project(home / FOLDER, tuple(passed))
    return Project(user_folder(), tuple(passed))


def user_folder() -> Path:
    """The folder of this user, for whoever is in no project."""
    return platformdirs.user_data_path("toolonce", appauthor=False)


def chosen_url(given: str | None, environment: Mapping[str, str] | None = None) -> str | None:
    """The URL that is named; None where none is, and this project's own server is meant.

    Raises:
        StoreMisuse: an empty one is given, as by a variable that was not set.
    """
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


def _above_here() -> list[Path]:
    try:
        here = Path.cwd()
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


def _near(folder: Path) -> list[Path]:
    """Other places where someone may have started a store: below this project, and this user's own."""
    with suppress(OSError):
        return [*sorted(folder.parent.glob(f"*/{FOLDER}")), user_folder()]
    return [user_folder()]


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
