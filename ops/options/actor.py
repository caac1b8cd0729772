"""Who acts, and why: what the history of a call will say for good."""

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
    """--actor, --reason and --request-id: for every command that writes history."""
    group = parser.add_argument_group("what the history will say")
    group.add_argument("--reason", default="", required=reason_required, help="why; kept with the call")
    group.add_argument("--actor", help=f"who; else {ACTOR}, else your login name and host")
    group.add_argument(
        "--request-id", metavar="ID", help="the same id again within a day is answered as before, not done again"
    )


def actor_of(args: argparse.Namespace) -> Actor:
    """Who a command acts for, and why; without a request id of its own it gets a new one, for our own re-sends.

    Raises:
        UnicodeEncodeError: something that was typed is no UTF-8 text.
    """
    words = (args.actor or os.environ.get(ACTOR) or _login(), args.reason, args.request_id or uuid.uuid4().hex)
    for word in words:
        word.encode()  # half a surrogate pair is a mistake of typing: said, not stored as another character
    return Actor(*words)


def secrets_of(found: Record) -> Secrets:
    """What an operator's words about this call must not repeat: its secret arguments, where the keys are at hand."""
    fields, keyring = found.fields, Keyring.from_environment()
    if not fields.secret or fields.kid not in keyring.ids:
        return NO_SECRETS
    sealer = Sealer(keyring, fields.tenant, fields.tool)
    return Secrets.of(sealer.open_arguments(json.loads(fields.args or "{}"), ())[1])


def without_secrets(by: Actor, found: Record) -> Actor:
    """The actor with a reason that the history of this call may keep."""
    return replace(by, reason=secrets_of(found).scrub(by.reason))


def require_done(done: Decision, call: str) -> Decision:
    """The answer, if the store did what was asked.

    Raises:
        NotFound: the call is gone.
        NotDone: someone or something was faster; the line says what is true now.
    """
    match done.verdict:
        case "gone":
            raise NotFound(f"call {call} is gone: its body is past retention, or it never was")
        case "changed":
            raise NotDone(f"not done: call {call} is {done.detail} by now{_fence(done)}; see `toolonce call {call}`")
        case "decided":
            raise NotDone(f"not done: {done.more} has decided call {call} already; it is {done.detail}")
        case "late":
            raise NotDone(f"not done: the approval of call {call} is past its lifetime; the call is {done.detail}")
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
        name = f"uid {os.getuid()}"  # a container's user without an entry in /etc/passwd
    return f"{name}@{socket.gethostname()}"
