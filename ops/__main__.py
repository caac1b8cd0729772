"""Runs the command line: `python -m toolonce.ops` is the same as `toolonce`."""

import sys

from .cli import main

sys.exit(main())
