"""Print a Lua script as the server gets it: with its preludes, and with the lists made from the record's table.

`python scripts/print_lua.py claim`; without a name all of them.
"""

from __future__ import annotations

import sys

from toolonce.store.operations import operation


def main() -> int:
    unknown = sorted(set(sys.argv[1:]) - set(operation.names()))
    if unknown:
        sys.stderr.write(f"no script {', '.join(unknown)}; there are: {', '.join(operation.names())}\n")
        return 2
    for name in sys.argv[1:] or operation.names():
        sys.stdout.write(operation.load(name).text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
