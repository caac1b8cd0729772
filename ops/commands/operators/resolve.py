"""`toolonce resolve KEY`: settles a call after a person has found out what happened.

For unknown calls, and for calls that are held because the store lost writes."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from ....store.model.keyring import Keyring
from ....store.model.outcomes import Failure
from ....store.model.plain import whole_text
from ....store.model.sealing import Sealer
from ....store.model.states import State
from ....store.operations.operators import Expected, resolve
from ....store.operations.tools import published
from ...errors import NotDone, Usage
from ...options import actor
from ...options.lookup import get_record
from ...options.parser import add_json, command
from ...options.settings import open_store
from ...views import render
from ...views.call_view import actor_of

if TYPE_CHECKING:
    from ....store.connections.connection import Connection
    from ....store.operations.queries import Record
    from ...options.parser import Subparsers

EXAMPLES = """
toolonce resolve 3f9a2c41d07b --succeeded '{"invoice": 17}' --reason 'found it in the billing system'
toolonce resolve 3f9a2c41d07b --failed 'not in the billing system' --reason 'checked at 03:10'
"""


def add_parser(subparsers: Subparsers) -> None:
    parser = command(
        subparsers,
        "resolve",
        "Settle a call that is unknown, or held because the store lost writes, by what you found out; nothing runs",
        examples=EXAMPLES,
    )
    parser.add_argument("key", metavar="KEY")
    verdict = parser.add_mutually_exclusive_group(required=True)
    verdict.add_argument("--succeeded", metavar="JSON", help="it happened, and this is its result for the model")
    verdict.add_argument("--failed", metavar="MESSAGE", help="it did not happen; the message is for the model")
    actor.add_options(parser, reason_required=True)
    add_json(parser, "{call, verdict, state}")


def run(args: argparse.Namespace) -> int:
    if not args.reason.strip() or args.failed == "":
        raise Usage("the text is empty: the history keeps --reason, and the model reads --failed")
    value = None if args.succeeded is None else _value(args.succeeded)
    with open_store(args) as connection:
        found = get_record(connection, args.key)
        by = actor.without_secrets(actor.actor_of(args), found)
        verdict = _failed(found, args.failed) if args.succeeded is None else _stored(connection, found, value)
        # A repeated request id gets the same answer, whatever the state is now.
        if not _is_in_doubt(found) and not args.request_id:
            raise NotDone(
                f"not done: call {found.key} is {found.state}{_by(found)}; only calls that are unknown, or held after "
                "the store lost writes, can be resolved"
            )
        expected = Expected(found.key, found.state if _is_in_doubt(found) else State.UNKNOWN, found.fence)
        done = actor.require_done(connection.run(resolve(connection.space, expected, verdict, by)), found.key)
    if args.json:
        render.show_json({"call": found.key, "verdict": done.verdict, "state": done.detail})
    else:
        render.show(f"call {found.key} is {done.detail}")
    return 0


def _is_in_doubt(found: Record) -> bool:
    held_back = found.state is State.HELD and found.fields.reason == "store_went_back"
    return held_back or found.state is State.UNKNOWN


def _by(found: Record) -> str:
    """The actor of the last change, so that the second of two operators learns of the first."""
    last = actor_of(found.history[-1]) if found.history else ""
    return f" ({last})" if last else ""


def _value(text: str) -> object:
    try:
        value = json.loads(text)
        json.dumps(value, allow_nan=False)  # json reads NaN, Infinity and 1e999, which are not JSON
        return value
    except (ValueError, RecursionError) as error:
        raise Usage(f"--succeeded takes JSON ({error}); write '\"text\"' for a text, null for no result") from error


def _failed(found: Record, words: str) -> Failure:
    return Failure("resolved", actor.secrets_of(found).scrub(words))


def _stored(connection: Connection, found: Record, value: object) -> str:
    """The value as it is stored: sealed where the tool's result is secret, and with the call's secrets masked."""
    rest = actor.secrets_of(found).scrub_value
    spec = connection.run(published(connection.space)).tools.get(found.fields.tool)
    if spec and spec.secret_result:
        sealer = Sealer(Keyring.from_environment(), found.fields.tenant, spec.name)
        return json.dumps(sealer.seal_result(value, spec.secret_result, rest))
    return whole_text(json.dumps(rest(value), ensure_ascii=False))
