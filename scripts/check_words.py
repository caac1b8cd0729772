"""Keep out of the repository what does not belong there: one machine's traces, and names that were given up.

Traces are home folders, package hosts and addresses of private networks. Names that were given up are words that only
the project used; each has a standard term, as have the phrases that were given up. Looks at every tracked text file but
recorded streams, which are kept byte for byte, and this module.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OWN = "scripts/check_words.py"
RECORDED = ("tests/data/", "ops/demo/transcripts/")
TRACES = {
    "a path of one machine": re.compile(r"(?<![\w./$}<-])/(?:work|root|home|Users|mnt)/[\w.-]+"),
    "a package host or index": re.compile(
        r"pythonhosted\.org|pypi\.org/simple|--(?:extra-)?index[-]url|--find[-]links"
    ),
    "a private address": re.compile(r"\b(?:10\.\d{1,3}|192\.168|172\.(?:1[6-9]|2\d|3[01]))\.\d{1,3}\.\d{1,3}\b"),
}
GIVEN_UP = {
    "ask later": "reconcile_later", "crowded": "saturated_limits", "desk": "WorkerContext", "herd": "children",
    "high water": "fence watermark", "horses": "process pool", "intake": "QueueCursor", "keeper": "server_supervisor",
    "linger": "defer_reconcile", "nursery": "ProcessStarter", "read back": "reconcile", "read backs": "reconcile",
    "reads back": "reconcile", "reply shape": "protocol", "roster": "worker_status", "rouse": "wake_waiting",
    "server word": "server_info", "sprout": "StartedProcess", "still mine": "check_lease", "tally": "counters",
    "told to end": "termination", "twins": "open_duplicates", "vitals": "health_snapshot", "wording": "model_text",
    "zygote": "fork_server",
}  # fmt: skip
PHRASES = {
    r"\banew\b": "again", r"\bfor want of\b": "since there is no", r"\bsigns? of life\b": "heartbeat",
    r"\bhal(?:f|ves) of (?:a )?surrogate pairs?\b": "lone surrogate",
}  # fmt: skip
"""Phrases of prose that the project gave up for a plain word."""


def _as_name(words: str) -> str:
    """The words as part of a name: small or large letters, joined by hyphen, underscore or nothing. In prose, two
    words with a blank between them say what they always say."""
    first, *rest = words.split()
    small = "[-_]?".join((first, *rest))
    camel = "".join(word.capitalize() for word in (first, *rest))
    capital = first.capitalize() + "".join(f"[-_]?{word}" for word in rest)
    return rf"(?<![A-Za-z])(?:{small}|{capital})(?![a-z])|{camel}(?![a-z])|(?<![A-Z]){small.upper()}(?![A-Z])"


NAMES = {re.compile(_as_name(words)): term for words, term in GIVEN_UP.items()} | {
    re.compile(phrase): term for phrase, term in PHRASES.items()
}


def complaints(root: Path = ROOT) -> Iterator[str]:
    """Yield one line per find: file, line number, what it is and the text."""
    for name in _tracked(root):
        if name.startswith(RECORDED) or name == OWN or not (root / name).is_file():
            continue
        yield from (f"{name}: {found}" for found in traces_in(name))
        text = (root / name).read_bytes().decode("utf-8", errors="replace")
        for number, line in enumerate(text.splitlines(), start=1):
            yield from (f"{name}:{number}: {found}" for found in traces_in(line))


def traces_in(line: str) -> Iterator[str]:
    """Yield what is wrong with one line of text."""
    for meaning, pattern in TRACES.items():
        if match := pattern.search(line):
            yield f"{meaning}: {match.group()}"
    for pattern, term in NAMES.items():
        if match := pattern.search(line):
            yield f"a name that was given up, say {term}: {match.group()}"


def _tracked(root: Path) -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True, text=True)
    return [name for name in listed.stdout.split("\0") if name]


def main() -> int:
    found = list(complaints())
    print("\n".join(found) or "No traces of a machine, no names that were given up.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
