"""`python -m toolonce.ops` is `toolonce`."""

import sys

from .cli import main

sys.exit(main())
