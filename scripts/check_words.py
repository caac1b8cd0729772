"""Keep one machine's traces out of the repository: home folders, package hosts, addresses of private networks.

Looks at every tracked text file but recorded streams, which are kept byte for byte.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORDED = ("tests/data/", "ops/demo/transcripts/")
TRACES = {
    "a path of one machine": re.compile(r"(?<![\w./$}<-])/(?:work|root|home|Users|mnt)/[\w.-]+"),
    "a package host or index": re.compile(
        r"pythonhosted\.org|pypi\.org/simple|--(?:extra-)?index[-]url|--find[-]links"
    ),
    "a private address": re.compile(r"\b(?:10\.\d{1,3}|192\.168|172\.(?:1[6-9]|2\d|3[01]))\.\d{1,3}\.\d{1,3}\b"),
}


def complaints(root: Path = ROOT) -> Iterator[str]:
    """Yield one line per trace: file, line number, what it is and the text."""
    for name in _tracked(root):
        if name.startswith(RECORDED) or not (root / name).is_file():
            continue
        text = (root / name).read_bytes().decode("utf-8", errors="replace")
        for number, line in enumerate(text.splitlines(), start=1):
            yield from (f"{name}:{number}: {found}" for found in traces_in(line))


def traces_in(line: str) -> Iterator[str]:
    """Yield what is wrong with one line of text."""
    for meaning, pattern in TRACES.items():
        if match := pattern.search(line):
            yield f"{meaning}: {match.group()}"


def _tracked(root: Path) -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True, text=True)
    return [name for name in listed.stdout.split("\0") if name]


def main() -> int:
    found = list(complaints())
    print("\n".join(found) or "No traces of a machine.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
