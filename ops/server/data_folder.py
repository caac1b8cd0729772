"""One folder that holds the data of one embedded server, and who may use it.

Decides that the folder is private, that only the server that wrote it (or a newer one of its family) opens it, where
its socket lies, and who holds it: a lock that lives as long as the server, and one shared by all its users.
Starts nothing and talks to no server.
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ...store.connections.project import SERVER_LOCK, SOCKET_NOTE, is_private, socket_name
from ..errors import DataFolderRefused
from .server_binary import Maker

# The kernel's own limits are 107 bytes on Linux and 103 on macOS.
SOCKET_PATH_BYTES = 100
_PRIVATE = 0o700
_OUR_FILES = {"users.lock", SERVER_LOCK, SOCKET_NOTE, "socket.new", "server.json", "server.new"}


class Lock:
    """An flock: it ends with the last process that holds the file open, however that process ends."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def fileno(self) -> int:
        """Return the descriptor; a child that inherits it holds the lock, too."""
        return self._descriptor

    @property
    def closed(self) -> bool:
        return self._descriptor < 0

    def take_shared(self) -> bool:
        """Take or keep the lock beside others; False if someone holds it alone."""
        return self._take(fcntl.LOCK_SH)

    def take_alone(self) -> bool:
        """Take the lock alone; False if anyone else holds it, and then a shared hold of ours is gone, too."""
        return self._take(fcntl.LOCK_EX)

    def close(self) -> None:
        """Give up our hold; a child that inherited it keeps it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _take(self, how: int) -> bool:
        try:
            fcntl.flock(self._descriptor, how | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


@dataclass(frozen=True, slots=True)
class DataFolder:
    """A private folder, checked by `open_folder`."""

    path: Path

    @property
    def config(self) -> Path:
        return self.path / "server.conf"

    @property
    def process_id_file(self) -> Path:
        """Written by the server, for people; we never act on it."""
        return self.path / "server.pid"

    @property
    def log(self) -> Path:
        """What the server that was started last has said."""
        return self.path / "server.log"

    def server_lock(self) -> Lock:
        """Return the lock that the running server holds, not yet taken."""
        return Lock(self.path / SERVER_LOCK)

    def users_lock(self) -> Lock:
        """Return the lock that all users of the server share, not yet taken."""
        return Lock(self.path / "users.lock")

    def written_by(self) -> Maker | None:
        """Return the server that wrote the data; None if none did.

        Raises:
            DataFolderRefused: The note about it is unreadable.
        """
        try:
            note = json.loads(self._maker.read_text())
            return Maker(note["family"], tuple(map(int, note["version"].split("."))))
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataFolderRefused(f"{self._maker} does not say which server wrote the data: {error}") from error

    def note_maker(self, maker: Maker) -> None:
        """Write down, before it starts, which server writes the data from here on."""
        version = ".".join(map(str, maker.version))
        self._write_durably(self._maker, json.dumps({"family": maker.family, "version": version}))

    def recorded_socket(self) -> Path | None:
        """Return where the last server was told to listen; whether it does, only a PING tells."""
        try:
            return Path(self._socket_note.read_text())
        except FileNotFoundError:
            return None

    def choose_socket(self) -> Path:
        """Decide where the next server listens, and record it; the same place as before if it is still good.

        Raises:
            DataFolderRefused: The folder for temporary files cannot hold a private socket.
        """
        name = socket_name(self.path)
        before = self.recorded_socket()
        # Another name means that this folder is a copy: the recorded socket belongs to the original.
        if before is None or before.name != name or not is_private(before.parent):
            before = _runtime_folder() / name
        if (size := len(os.fsencode(before))) > SOCKET_PATH_BYTES:
            raise DataFolderRefused(
                f"{before} is too long for a socket: {size} bytes, at most {SOCKET_PATH_BYTES}; set a short TMPDIR"
            )
        self._write_durably(self._socket_note, str(before))
        return before

    @property
    def _maker(self) -> Path:
        return self.path / "server.json"

    @property
    def _socket_note(self) -> Path:
        return self.path / SOCKET_NOTE

    def _write_durably(self, path: Path, text: str) -> None:
        new = path.with_suffix(".new")
        with new.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(descriptor)  # without it the rename itself may be lost
        finally:
            os.close(descriptor)


def open_folder(path: Path) -> DataFolder:
    """Make the folder, or check the one that is there, and keep everyone else out of it.

    Raises:
        DataFolderRefused: It cannot be made or read, is not ours, or holds something that no server of ours wrote.
    """
    with folder_errors(path):
        path.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        folder = DataFolder(path.resolve(strict=True))
        if folder.path.stat().st_uid != os.getuid():
            raise DataFolderRefused(f"{path} belongs to another user; name another folder")
        if (folder.path / "appendonlydir").exists() and folder.written_by() is None:
            raise DataFolderRefused(f"{path} holds data of an unknown server; name another folder")
        if not _is_ours(folder.path):
            raise DataFolderRefused(f"{path} holds other files; name an empty folder or a new one")
        folder.path.chmod(_PRIVATE)
        return folder


@contextmanager
def folder_errors(path: Path) -> Iterator[None]:
    """Turn what the operating system refuses (permissions, a full disk, no folder) into one line about `path`."""
    try:
        yield
    except OSError as error:
        raise DataFolderRefused(f"cannot use {error.filename or path}: {error.strerror}") from error


def _is_ours(path: Path) -> bool:
    # Another process may be making the same folder: until its note is there, its other files are what tells.
    names = set(os.listdir(path))
    return "server.json" in names or names <= _OUR_FILES


def _runtime_folder() -> Path:
    # The data folder's own path may be too long for a socket, or lie where there are none.
    folder = Path(tempfile.gettempdir()) / f"toolonce-{os.getuid()}"
    with folder_errors(folder):
        folder.mkdir(mode=_PRIVATE, exist_ok=True)
        if not is_private(folder):
            raise DataFolderRefused(f"{folder} is open to other users; remove it or set TMPDIR")
    return folder
