"""`toolonce url`: prints where the store of this folder's programs is."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ....store.connections.project import find_project
from ...options.parser import add_json, command
from ...options.settings import StoreSettings, open_store
from ...views import render

if TYPE_CHECKING:
    from ...options.parser import Subparsers

EXAMPLES = """
toolonce url                                     the server that programs in this folder use, if it runs
export TOOLONCE_REDIS_URL=$(toolonce url)        for a program that runs in another folder
toolonce url --json
"""


def add_parser(subparsers: Subparsers) -> None:
    parser = command(
        subparsers, "url", "Print the URL of the store, whole, with the password if it has one", examples=EXAMPLES
    )
    add_json(parser, "{url, namespace, folder: that of this project's own server, else null}")


def run(args: argparse.Namespace) -> int:
    with open_store(args, any_kind=True) as connection:
        url, namespace = connection.url, connection.space.name
    if args.json:
        own = StoreSettings.of(args).url is None
        folder = str(find_project().folder) if own else None
        render.show_json({"url": url, "namespace": namespace, "folder": folder})
    else:
        render.show(url)
    return 0
