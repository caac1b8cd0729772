"""The standard streams as a command may find them: closed, unable to show every letter, or without a reader.

Decides what our output does then. Knows no command.
"""

from __future__ import annotations

import io
import os
import sys


def prepare() -> None:
    """Closed streams (``>&-``) become empty ones; letters that the locale cannot show are escaped."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
        elif mode == "w" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def give_up_output() -> None:
    """Whatever is still to be written to stdout goes nowhere; Python would complain while it flushes at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except io.UnsupportedOperation:
        return  # not a file, so nothing is flushed at exit
