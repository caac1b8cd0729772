"""Lint the Lua scripts as the server gets them: each with its preludes in front, which it names in `uses`.

Needs luacheck; where there is none it fails with the command that installs it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from toolonce.store.operations import operation

ROOT = Path(__file__).resolve().parent.parent
_COMPLAINT = re.compile(r"^stdin:(\d+):\d+: \((\w)(\d+)\) (.*)$")


def complaints(luacheck: str) -> Iterator[str]:
    """Yield one line per complaint, with the line number of the file it is about."""
    for name in operation.names():
        own = (ROOT / "store" / "lua" / f"{name}.lua").read_text(encoding="utf-8")
        whole = operation.load(name).text
        before = len(whole.splitlines()) - len(own.splitlines())
        for line, code, meaning in lint(luacheck, whole):
            # Each script uses a part of its preludes: what it leaves unused there is no fault of anyone.
            if line > before:
                yield f"store/lua/{name}.lua:{line - before}: {meaning}"
            elif not code.startswith("2"):
                yield f"store/lua/{name}.lua, in its preludes: {meaning}"


def lint(luacheck: str, text: str) -> Iterator[tuple[int, str, str]]:
    """Yield line number, code and meaning of each complaint about one script."""
    readable = re.sub(r"\A#!", "--", text)  # "#!lua flags=..." is the server's, not Lua's
    command = [luacheck, "--config", str(ROOT / ".luacheckrc"), "--formatter", "plain", "--codes", "-"]
    said = subprocess.run(command, input=readable, capture_output=True, text=True, check=False)
    for row in said.stdout.splitlines():
        if match := _COMPLAINT.match(row):
            yield int(match[1]), match[3], match[4]


def main() -> int:
    luacheck = shutil.which("luacheck")
    if luacheck is None:
        print(
            "luacheck is not installed, so Lua cannot be linted. On Debian and Ubuntu: sudo apt-get install lua-check"
        )
        return 1
    found = list(dict.fromkeys(complaints(luacheck)))
    print("\n".join(found) or "Lua clean.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
