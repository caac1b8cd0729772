"""The server of ours for those who have none: found, started, shared and ended.

Decides when a server is started or joined and when it ends: one server per data folder, whoever starts it, and the
last user ends it. A server that was killed is started again with its data. Two lives are possible: durable, in the
project's folder, and transient, in a folder that is deleted at the end, dying with the process that wanted it.

Rules. The server holds `server.lock`; nobody starts one without it. Every user holds `users.lock` shared, from before
it looks for the server until it leaves; who gets it alone was the last and ends the server before letting go.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Self

from ...store.connections.project import FOLDER, Project, find_project, own_project, user_folder
from ...store.model.errors import StoreMisuse
from ..errors import NoStoreHere, ServerNotStarted
from ..views import render
from . import server_process
from .data_folder import DataFolder, Lock, folder_errors, open_folder
from .server_process import ServerIdentity
from .termination import uninterrupted

# Time for a server that was started or is ending, and says nothing meanwhile. Loading data is not counted.
_PATIENCE_SECONDS = 20.0
_ENDING_SECONDS = 10.0
_POLL_SECONDS = 0.005
# Reads until its input ends, which is when the process that holds the other end is gone. Removes again what others who
# die with it have written while it removed.
_WATCH = 'read -r word; kill -KILL "$1"; for again in 1 2 3; do rm -rf -- "$2" "$3" && break; sleep 1; done'


def project_server(*, create: bool = False) -> EmbeddedServer:
    """Join this project's server if it runs; only with `create` is it started, and a store made where there is none.

    Raises:
        NoStoreHere: this project has none, or it does not run.
        EmbeddedServerError: There is none to be had; one line says why and what helps.
    """
    project = find_project()
    for warning in project.warnings:
        render.say(f"toolonce: warning: {warning}")
    if create:
        make_folder(project)
        if note := _shared(project):
            render.say(f"toolonce: {note}")
    else:
        try:
            project.running_url()
        except StoreMisuse as error:
            raise NoStoreHere(str(error)) from error
    return ensure_server(project.data)


def make_folder(project: Project) -> None:
    """Make the folder of a project where there is none.

    Raises:
        DataFolderRefused: it cannot be made.
    """
    with folder_errors(project.folder):
        project.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        ignored = project.folder / ".gitignore"
        if project.folder.name == FOLDER and not ignored.exists():
            ignored.write_text("*\n")  # nothing of it is for a repository


def _shared(project: Project) -> str:
    """A note for people where other folders, which they may not think of, have the same store; "" where none have."""
    own = f"`toolonce init`, or `mkdir {FOLDER}`, gives this one a store of its own"
    if project.folder == user_folder():
        return (
            f"this folder is in no project, so its store is the one in {project.folder}, which all such folders of "
            f"yours share; {own}"
        )
    mine = own_project().folder.parent
    if project.folder.parent != mine and project.folder.parent in mine.parents:
        return f"the store is the one in {project.folder}, which all folders below {project.folder.parent} share; {own}"
    return ""


def ensure_server(data_dir: Path) -> EmbeddedServer:
    """Join the server of this folder, or start it; it answers and holds its earlier data when this returns.

    Raises:
        EmbeddedServerError: There is none to be had; one line says why and what helps.
    """
    return EmbeddedServer(open_folder(data_dir))


def transient_server() -> EmbeddedServer:
    """Start a server on an empty folder; both are gone when it is stopped or this process ends, however it ends.

    Raises:
        EmbeddedServerError: As `ensure_server`.
    """
    with folder_errors(Path(tempfile.gettempdir())):
        path = Path(tempfile.mkdtemp(prefix="toolonce-transient-"))
    try:
        return _TransientServer(open_folder(path))
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise


class EmbeddedServer:
    """Our use of one server. Stop it when done, or use it as a context manager."""

    def __init__(self, folder: DataFolder) -> None:
        self._folder = folder
        self._user = os.getpid()
        self._process: subprocess.Popen[bytes] | None = None
        with folder_errors(folder.path):
            self._users = folder.users_lock()
            atexit.register(self.stop)  # told to end between here and the caller's `with`, nobody else would end it
            try:
                self._answer = self._join_or_start()
            except BaseException:
                self._abandon()
                raise

    @property
    def url(self) -> str:
        """The URL for a Redis client; it stays the same for a folder unless TMPDIR changes."""
        return f"unix://{self._folder.recorded_socket()}"

    @property
    def folder(self) -> Path:
        """Where its data lies."""
        return self._folder.path

    @property
    def owned(self) -> bool:
        """Whether we started it; a joined one was there before us. It makes no difference for its end."""
        return self._process is not None

    @property
    def process_id(self) -> int:
        """The server's process, as the server says itself."""
        return self._answer.process_id

    def is_alive(self) -> bool:
        """Whether it answers now."""
        return isinstance(server_process.ask(self._folder), ServerIdentity)

    def revive(self) -> None:
        """Start it again with its data if it ended; nothing happens if it answers.

        Raises:
            EmbeddedServerError: It does not start; one line says why and what helps.
        """
        if self._process and self._process.poll() is not None:
            self._process = None
        with folder_errors(self._folder.path):
            self._answer = self._join_or_start()

    def last_words(self) -> str:
        """Say in one line why the server ended, when it did."""
        return server_process.last_words(self._folder)

    def stop(self) -> None:
        """Leave the server; it ends when its last user leaves. Once is enough, more does no harm."""
        # A forked child shares our hold on the lock: it would end the server over its parent's head.
        if self._users.closed or self._user != os.getpid():
            return
        atexit.unregister(self.stop)
        try:
            if self._users.take_alone():
                self._end_server()
        finally:
            self._users.close()
            if self._process and self._process.poll() is None:
                self._process.returncode = 0  # it lives on for its other users: no child of ours to warn about

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def _join_or_start(self) -> ServerIdentity:
        started = False
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < deadline:
            match server_process.ask(self._folder) if self._users.take_shared() else "ending":
                case ServerIdentity() as answer:
                    return answer
                case "loading":
                    deadline = time.monotonic() + _PATIENCE_SECONDS
                case None if started:
                    self._require_that_it_lives()
                case None:
                    started = self._start_unless_held()
            time.sleep(_POLL_SECONDS)
        raise ServerNotStarted(
            f"a server holds {self.folder} and does not answer; end the process named in {self._folder.process_id_file}"
        )

    def _start_unless_held(self) -> bool:
        lock = self._folder.server_lock()
        try:
            if not lock.take_alone():
                return False
            if self._process:
                self._process.wait()  # its lock is free: it has ended, and is reaped here
            with uninterrupted():  # else it might run, and nobody know it for ours
                self._process = self._start(lock)
            return True
        finally:
            lock.close()  # the server has inherited it

    def _require_that_it_lives(self) -> None:
        if self._process and self._process.poll() is not None:
            raise ServerNotStarted(f"the server of {self.folder} did not start: {self.last_words()}")

    def _start(self, lock: Lock) -> subprocess.Popen[bytes]:
        return server_process.start(self._folder, lock)

    def _abandon(self) -> None:
        atexit.unregister(self.stop)
        # Interrupted while it starts or joins (Ctrl-C): the server would be nobody's, and stay.
        try:
            if self._users.take_alone():
                self._end_unused()
        finally:
            self._users.close()

    def _end_unused(self) -> None:
        if self._process and self._process.poll() is None:
            self._process.kill()  # it never answered, so there is nothing to write
            self._process.wait()
        elif isinstance(server_process.ask(self._folder), ServerIdentity):
            server_process.end(self._folder)  # its other users have left since we found it

    def _end_server(self) -> None:
        server_process.end(self._folder)
        if not self._is_gone_within(_ENDING_SECONDS):
            server_process.kill(self.process_id)
            self._is_gone_within(_ENDING_SECONDS)

    def _is_gone_within(self, seconds: float) -> bool:
        lock = self._folder.server_lock()
        deadline = time.monotonic() + seconds
        try:
            while not (gone := lock.take_alone()) and time.monotonic() < deadline:
                time.sleep(_POLL_SECONDS)
        finally:
            lock.close()
        if self._process and gone:
            self._process.wait()
        return gone


class _TransientServer(EmbeddedServer):
    """A server that dies with us: by `stop`, or by a watching shell when we just end or are killed."""

    def __init__(self, folder: DataFolder) -> None:
        self._watcher: subprocess.Popen[bytes] | None = None
        super().__init__(folder)

    def _start(self, lock: Lock) -> subprocess.Popen[bytes]:
        process = super()._start(lock)
        self._dismiss_watcher()
        self._watcher = subprocess.Popen(
            ["/bin/sh", "-c", _WATCH, "watch", str(process.pid), self.folder, str(self._folder.recorded_socket())],
            stdin=subprocess.PIPE,  # only we hold the other end: Python's descriptors are not inherited
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        return process

    def _end_server(self) -> None:
        server_process.kill(self.process_id)  # nothing of it is kept
        self._is_gone_within(_ENDING_SECONDS)
        for socket in filter(None, [self._folder.recorded_socket()]):
            socket.unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)
        self._dismiss_watcher()

    def _dismiss_watcher(self) -> None:
        if self._watcher is None:
            return
        self._watcher.kill()
        self._watcher.communicate()
        self._watcher = None
