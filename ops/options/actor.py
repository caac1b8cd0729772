"""The actor of a command and the reason, which the history of a call keeps."""

from __future__ import annotations

import argparse
import getpass
import json
import os
import socket
import uuid
from dataclasses import replace

from ...store.model.keyring import Keyring
from ...store.model.sealing import Sealer
from ...store.model.secret_texts import NO_SECRETS, Secrets
from ...store.operations.operators import Actor, Decision
from ...store.operations.queries import Record
from ..errors import NotDone, NotFound

ACTOR = "TOOLONCE_ACTOR"


def add_options(parser: argparse.ArgumentParser, *, reason_required: bool = False) -> None:
    """Add --actor, --reason and --request-id, for every command that changes calls."""
    group = parser.add_argument_group("for the history of the call")
    group.add_argument("--reason", default="", required=reason_required, help="why; the history keeps it")
    _add_actor(group)
    group.add_argument(
        "--request-id",
        metavar="ID",
        help="id of this request: repeated within a day it gives the same answer and does nothing",
    )


def add_author(parser: argparse.ArgumentParser) -> None:
    """Add --actor and --reason, for every command that changes a setting."""
    group = parser.add_argument_group("for others who see the setting")
    group.add_argument("--reason", default="", help="why; shown with it until it is changed or cleared")
    _add_actor(group)
    parser.set_defaults(request_id=None)


def _add_actor(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--actor", help=f"who does it; default: {ACTOR}, else your login name and host")


def actor_of(args: argparse.Namespace) -> Actor:
    """The actor and reason of a command. Without --request-id it gets a new request id, for repeats after lost answers.

    Raises:
        UnicodeEncodeError: an argument is not valid UTF-8.
    """
    words = (args.actor or os.environ.get(ACTOR) or _login(), args.reason, args.request_id or uuid.uuid4().hex)
    for word in words:
        word.encode()  # refuse a lone surrogate rather than store another character
    return Actor(*words)


def secrets_of(found: Record) -> Secrets:
    """The secret arguments of a call, which a reason must not contain; empty where this process has no keys."""
    fields, keyring = found.fields, Keyring.from_environment()
    if not fields.secret or fields.kid not in keyring.ids:
        return NO_SECRETS
    sealer = Sealer(keyring, fields.tenant, fields.tool)
    return Secrets.of(sealer.open_arguments(json.loads(fields.args or "{}"), ())[1])


def without_secrets(by: Actor, found: Record) -> Actor:
    """The actor with secrets of the call masked in the reason."""
    return replace(by, reason=secrets_of(found).scrub(by.reason))


def require_done(done: Decision, call: str) -> Decision:
    """The decision, if the store accepted it.

    Raises:
        NotFound: the call is gone.
        NotDone: the call has changed meanwhile, or another one has its unique key; the text says how it is now.
    """
    match done.verdict:
        case "gone":
            raise NotFound(f"call {call} does not exist, or its retention has ended")
        case "changed":
            raise NotDone(f"not done: call {call} is {done.detail} by now{_fence(done)}; see `toolonce call {call}`")
        case "decided":
            raise NotDone(f"not done: {done.more} has already decided call {call}; it is {done.detail}")
        case "late":
            raise NotDone(f"not done: the time to approve call {call} has ended; the call is {done.detail}")
        case "taken":
            holder = done.detail[:12]
            raise NotDone(
                f"not done: call {holder} has the unique key of call {call[:12]}; it is {done.more}; "
                f"see `toolonce call {holder}`"
            )
        case "mismatch":
            raise NotDone(f"not done: call {call} has other arguments than the ones shown; look again")
        case _:
            return done


def _fence(done: Decision) -> str:
    return f" (fence {done.more})" if done.more not in ("", "0") else ""


def _login() -> str:
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = f"uid {os.getuid()}"  # in a container the user may have no entry in /etc/passwd
    return f"{name}@{socket.gethostname()}"
