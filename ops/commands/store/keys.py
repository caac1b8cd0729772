"""`toolonce keys`: prints keys for harnesses, derived from the keys of the installation."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ....store.model.keyring import Keyring
from ....stream.inbox.tenants import is_tenant
from ...errors import Usage
from ...options.parser import add_json, command
from ...views import render

if TYPE_CHECKING:
    from ...options.parser import Subparsers

EXAMPLES = """
TOOLONCE_ENTRY_KEY=$(toolonce keys seal --tenant acme)      for harnesses of the tenant acme
"""
SEAL = """
toolonce keys seal --tenant acme
TOOLONCE_KEYS=new,old toolonce keys seal --tenant acme --json      from the newest key
"""


def add_parser(subparsers: Subparsers) -> None:
    parser = command(
        subparsers, "keys", "Print keys for harnesses, derived from TOOLONCE_KEYS", examples=EXAMPLES, store=False
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    summary = "Print the key with which harnesses of a tenant seal their inbox entries, and nothing else"
    seal = command(actions, "seal", summary, examples=SEAL, store=False)
    seal.add_argument("--tenant", required=True, metavar="T", help="the tenant, as in the name of its inbox")
    seal.set_defaults(action=_seal)
    add_json(seal, "{tenant, entry_key, key_id}")


def run(args: argparse.Namespace) -> int:
    code: int = args.action(args)
    return code


def _seal(args: argparse.Namespace) -> int:
    if not is_tenant(args.tenant):
        raise Usage(f"--tenant {args.tenant!r}: a tenant's name is printable text without ':' and '/'")
    keyring = Keyring.from_environment()
    entry_key = keyring.entry_key(args.tenant)
    if args.json:
        render.show_json({"tenant": args.tenant, "entry_key": entry_key, "key_id": keyring.newest_id})
    else:
        render.show(entry_key)
    return 0
