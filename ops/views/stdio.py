"""Prepares standard streams that are closed, cannot encode every character, or have no reader.

Decides what happens to output then. Must not know any command.
"""

from __future__ import annotations

import io
import os
import sys


def prepare() -> None:
    """Replace closed streams (``>&-``) by empty ones, and escape characters that the locale cannot encode."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
        elif mode == "w" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def give_up_output() -> None:
    """Discard output that is still buffered for stdout; else Python would report an error at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except io.UnsupportedOperation:
        return  # not a file, so Python flushes nothing at exit
