"""One embedded server as a process: started in a data folder, asked whether it answers, ended.

Decides the command, the configuration file and what a server's end means in one line. Whether a server should run,
and who may end it, is decided elsewhere.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from ..errors import DataFolderRefused
from .data_folder import DataFolder, Lock, folder_errors
from .server_binary import choose_binary
from .termination import uninterrupted

_ANSWER_SECONDS = 2.0  # a server that holds its data answers in well under a millisecond
_LOG_TAIL_BYTES = 16_384
_LOUD = re.compile(r"^\d+:\w .*? # (.+)$", re.MULTILINE)  # the server's log marks warnings with "#"
# Said at every start, by Redis 7.0 as loudly as a cause.
_AT_EVERY_START = ("WARNING", "oO0OoO0OoO0Oo", "Redis version=", "Configuration loaded", "Server initialized")
_KNOWN_ENDS = (
    ("Short write while writing to the AOF file", "the disk is full; make room and start again"),
    ("No space left on device", "the disk is full; make room and start again"),
    ("Bad file format reading the append only file", "its data is damaged; check it with valkey-check-aof"),
    ("Unrecoverable error reading the append only file", "its data cannot be read; check the disk"),
    ("Permission denied", "it may not read or write its own files; check their owner"),
)


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """What a server on our socket says of itself."""

    process_id: int
    run_id: str


def start(folder: DataFolder, lock: Lock) -> subprocess.Popen[bytes]:
    """Start the server that may open the folder; it inherits the lock, so that the lock lives exactly as long.

    Returns at once; it does not answer yet.

    Raises:
        NoServerBinary, DataFolderRefused: See `choose_binary` and `DataFolder`.
    """
    binary = choose_binary(folder.written_by())
    with folder_errors(folder.path):
        socket = folder.choose_socket()
        folder.note_maker(binary.maker)
        folder.config.write_text(_config(folder, socket))
        socket.unlink(missing_ok=True)  # left by a killed server: we hold its lock
        with folder.log.open("wb") as log:
            return subprocess.Popen(
                [binary.path, folder.config],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=binary.environment(),
                start_new_session=True,  # a Ctrl-C in the terminal is for us; we end the server last
                pass_fds=(lock.fileno(),),
            )


def ask(folder: DataFolder) -> ServerIdentity | Literal["loading"] | None:
    """PING the folder's socket; None unless a server answers that says itself that it holds this very folder."""
    try:
        # redis-py tries int() on each fact of INFO, and Python drops a signal's exception while it words the failure.
        with uninterrupted(), _client(folder) as client:
            client.ping()
            held: Any = client.config_get("dir")
            about: Any = client.info("server")
    except redis.BusyLoadingError:
        return "loading"
    except (redis.ConnectionError, redis.TimeoutError):
        return None
    if held["dir"] != str(folder.path):
        return None  # the folder was copied, and with it the word where its original listens
    return ServerIdentity(int(about["process_id"]), str(about["run_id"]))


def end(folder: DataFolder) -> None:
    """Ask the server to end, with everything written. One that hangs or is gone is not heard of here."""
    with _client(folder) as client, suppress(redis.ConnectionError, redis.TimeoutError):
        client.execute_command("SHUTDOWN", "NOSAVE")  # answered by closing the connection


def kill(process_id: int) -> None:
    """End it at once. Nothing that was acknowledged is lost."""
    with suppress(ProcessLookupError):
        os.kill(process_id, signal.SIGKILL)


def last_words(folder: DataFolder) -> str:
    """Say in one line why the folder's server ended, by its log."""
    try:
        with folder.log.open("rb") as log:
            log.seek(max(0, folder.log.stat().st_size - _LOG_TAIL_BYTES))
            text = log.read().decode(errors="replace")
    except OSError as error:
        return f"its log cannot be read: {error.strerror}"
    for sign, meaning in _KNOWN_ENDS:
        if sign in text:
            return meaning
    loud = [words for words in _LOUD.findall(text) if not words.startswith(_AT_EVERY_START)]
    return loud[-1] if loud else f"it left no word in {folder.log}"


def _client(folder: DataFolder) -> redis.Redis:
    socket = folder.recorded_socket() or folder.path / "no-socket-yet"
    return redis.Redis(
        unix_socket_path=str(socket),
        socket_timeout=_ANSWER_SECONDS,
        retry=Retry(NoBackoff(), 0),  # whoever asks, asks again
        decode_responses=True,
    )


def _config(folder: DataFolder, socket: Path) -> str:
    own = f"dir {_quoted(folder.path)}\nunixsocket {_quoted(socket)}\npidfile {_quoted(folder.process_id_file)}\n"
    return own + files(__package__).joinpath("embedded.conf").read_text()


def _quoted(path: Path) -> str:
    text = str(path)
    if not text.isprintable():
        raise DataFolderRefused(f"{text!r} cannot be written into a configuration file; name another folder")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
