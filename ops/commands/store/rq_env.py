"""`toolonce rq-env`: prints the environment that RQ's own tools need to see the queues of toolonce."""

from __future__ import annotations

import argparse
import shlex
from typing import TYPE_CHECKING

from ....store.connections.urls import read_sentinel_url
from ....store.model.keys import Namespace
from ...errors import Usage
from ...options.parser import add_json, command
from ...options.settings import StoreSettings, open_store
from ...views import render

if TYPE_CHECKING:
    from ...options.parser import Subparsers

EXAMPLES = """
eval "$(toolonce rq-env)"; rq info               queues and workers as RQ shows them
eval "$(toolonce rq-env)"; rq-dashboard --redis-url "$RQ_REDIS_URL"
toolonce rq-env --namespace staging --redis redis://127.0.0.1:6379
"""
SUMMARY = "Print the environment in which RQ's own tools, `rq info` and dashboards, see the queues of toolonce"


def add_parser(subparsers: Subparsers) -> None:
    parser = command(subparsers, "rq-env", SUMMARY, examples=EXAMPLES)
    parser.description = f"{SUMMARY}. The URL is printed with its password. RQ's command line accepts no Sentinel URL."
    add_json(parser, "{RQ_KEY_PREFIX}, and RQ_REDIS_URL where RQ can read the URL")


def run(args: argparse.Namespace) -> int:
    variables = _variables(args)
    if args.json:
        render.show_json(variables)
        return 0
    for name, value in variables.items():
        render.show(f"export {name}={shlex.quote(value)}")
    if "RQ_REDIS_URL" not in variables:
        render.say("toolonce: RQ's command line accepts no Sentinel URL; use the primary's URL: rq info --url URL")
    return 0


def _variables(args: argparse.Namespace) -> dict[str, str]:
    settings = StoreSettings.of(args)
    try:
        prefix = {"RQ_KEY_PREFIX": Namespace(settings.namespace).rq_prefix}
        url = settings.url or _own_server(args)
        return prefix if read_sentinel_url(url) else {**prefix, "RQ_REDIS_URL": url}
    except ValueError as error:
        raise Usage(str(error)) from error


def _own_server(args: argparse.Namespace) -> str:
    with open_store(args) as connection:
        return connection.url
