"""What can go wrong on the operator's side, each with the exit code that the command line gives it.

OpsError
  EmbeddedServerError       the server that we start ourselves cannot be had
    NoStoreHere             this project has none, and the command makes none
    NoServerBinary          no usable valkey-server or redis-server on this machine
    DataFolderRefused       the folder is not ours, not readable, or belongs to another server
    ServerNotStarted        the server ended before it answered, or did not answer in time
  Usage                     the command line asks for something that cannot be, or names a file that cannot be read
  NotFound                  there is no such call or turn
  NotDone                   the store, or another operator, has moved on: nothing was changed
  Unsafe                    refused until it is confirmed, or until it is mended
"""

from __future__ import annotations

from ..store.model.errors import ToolonceError


class OpsError(ToolonceError):
    """One line that names the cause and the way out; shown to the operator as it is."""

    exit_code = 1


class EmbeddedServerError(OpsError):
    """There is no embedded server to talk to."""

    exit_code = 3


class NoStoreHere(EmbeddedServerError):
    """This project has no store; the message names the nearest one, and how to start one."""


class NoServerBinary(EmbeddedServerError):
    """No server program fits; the message holds the one command that helps."""


class DataFolderRefused(EmbeddedServerError):
    """The data folder may not be used, by us or by the server at hand; nothing in it was changed."""


class ServerNotStarted(EmbeddedServerError):
    """The server did not come to answer; the message ends with its own last words."""


class Usage(OpsError):
    """The command line asks for something that cannot be, or names a file that cannot be read."""

    exit_code = 2


class NotFound(OpsError):
    """What was named is not there."""


class NotDone(OpsError):
    """The picture that the operator acted on is no longer true; nothing was changed, and the line says what is."""


class Unsafe(OpsError):
    """Refused for safety; the line says what would allow it."""

    exit_code = 4
