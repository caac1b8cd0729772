"""The errors of the operator's side; `exit_codes` gives each its exit code.

OpsError
  EmbeddedServerError       there is no embedded server to use
    NoStoreHere             this project has none, or it does not run, and the command only joins
    NoServerBinary          no usable valkey-server or redis-server on this machine
    DataFolderRefused       the folder belongs to another user or server, or cannot be read
    ServerNotStarted        the server ended before it answered, or did not answer in time
  Usage                     wrong arguments, or a file that cannot be read
  NotFound                  there is no such call or turn
  NotDone                   the call has changed meanwhile: nothing was done
  Unsafe                    refused for safety until it is confirmed or repaired
"""

from __future__ import annotations

from ..store.model.errors import ToolonceError


class OpsError(ToolonceError):
    """The text is one line that names the cause and what to do; the operator sees it unchanged."""

    exit_code = 1


class EmbeddedServerError(OpsError):
    """There is no embedded server to use."""

    exit_code = 3


class NoStoreHere(EmbeddedServerError):
    """This project has no store that runs; the message names the nearest one, and how to start one."""


class NoServerBinary(EmbeddedServerError):
    """There is no suitable server program; the message holds the command that installs one."""


class DataFolderRefused(EmbeddedServerError):
    """The data folder must not be used by this user or by the installed server; nothing in it was changed."""


class ServerNotStarted(EmbeddedServerError):
    """The server ended before it answered, or did not answer in time; the message ends with its last log line."""


class Usage(OpsError):
    """The arguments of a command are wrong, or name a file that cannot be read."""

    exit_code = 2


class NotFound(OpsError):
    """There is no such call or turn."""


class NotDone(OpsError):
    """The call has changed since the operator saw it. Nothing was done; the text says how the call is now."""


class Unsafe(OpsError):
    """Refused for safety; the text says what would allow it."""

    exit_code = 4
