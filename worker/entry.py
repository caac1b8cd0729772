"""The one dotted path that RQ ever stores. A wire name: it outlives deploys and is never renamed.

It is never run. Our worker takes pointers itself and looks at the record; should RQ's own worker, or any tool of RQ,
execute a pointer, this refuses, so that nothing runs outside a lease.
"""

from __future__ import annotations

from typing import NoReturn

from .tools.errors import NotThroughRQ


def run(*args: object, **kwargs: object) -> NoReturn:
    """Refuse.

    Raises:
        NotThroughRQ: always.
    """
    raise NotThroughRQ("calls are run by `toolonce work`, not by RQ's own worker; the call stays as it is")
