"""Our decoder against the vendors' own stream readers and against the floor, on the same bytes in one process.

Run: .venv/bin/python benchmarks/decode.py [--json]        needs the dependency group ``sdk``; --no-sdk without
     .venv/bin/python benchmarks/decode.py --dialect cohere --rounds 5        one dialect, in less time

Floor: ``json.loads`` of each payload alone, which no decoder that reads every frame can do without. Reader: the
vendor's typed events, one by one, nothing assembled. Helper: the same with the vendor's own assembly of the calls.
At most: the floor, 2 us an event and 15 us a turn; in bold where ours takes longer.
Each of our numbers is the best of all rounds, the vendors' are of one; a ratio counts, not its microseconds.
Time is this process's own processor time, so that a busy machine changes little.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from toolonce.stream.turns.turn import Dialect

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.support.stream import event_stream  # noqa: E402  it needs the path above
from tests.support.stream.transcripts import MORE_RECORDINGS, RECORDINGS, transcripts  # noqa: E402  it needs the path above
from tests.support.stream.wire import RENDER, WireCall, event  # noqa: E402
from toolonce.stream import DIALECTS, TurnDecoder  # noqa: E402
from toolonce.stream.dialects.table import TABLE  # noqa: E402
from toolonce.stream.wire.event_stream import EventStreamReader  # noqa: E402
from toolonce.stream.wire.ndjson import NdjsonReader  # noqa: E402

CHUNK = 16_384  # what an HTTP client hands over at a time
EVENTS = 10_000
ROUNDS = 20  # unless --rounds says otherwise
US_A_TURN, US_AN_EVENT = 15, 2
REPEAT_BYTES = 300_000  # recordings are read again and again until about so many bytes were read


@dataclass(frozen=True)
class DecodeRow:
    """Microseconds for one event, each the best round."""

    stream: str
    turns: int
    events: int
    floor: float
    ours: float
    reader: float | None
    helper: float | None

    @property
    def most(self) -> float:
        """What we mean to take at most: the floor, a little for each event, and the fixed price of a turn."""
        return self.floor + US_AN_EVENT + US_A_TURN * self.turns / self.events


def synthetic(dialect: Dialect) -> bytes:
    """One turn of about ``EVENTS`` events: four calls, one after the other, as servers send them."""
    text = json.dumps({"text": 'some words of "text" é 東京 ' * 4000}, ensure_ascii=False)
    size = max(1, len(text) // (EVENTS // 4))
    fragments = tuple(text[at : at + size] for at in range(0, len(text), size))
    calls = [WireCall(f"c{number}", "write", fragments) for number in range(4)]
    if dialect == "google-generate":  # its calls come whole: the events are text
        words = [{"candidates": [{"content": {"parts": [{"text": part}]}, "index": 0}]} for part in fragments]
        whole = [WireCall(call.call_id, call.name, (text,)) for call in calls]
        return b"".join(event(word) for word in words * 4) + RENDER[dialect](whole, [], "Hi")
    if dialect == "ollama":  # the same
        base = {"model": "m", "created_at": "2026-01-02T03:04:05Z", "done": False}
        lines = [json.dumps({**base, "message": {"role": "assistant", "content": part}}) for part in fragments]
        whole = [WireCall(call.call_id, call.name, (text,)) for call in calls]
        return "".join(f"{line}\n" for line in lines * 4).encode() + RENDER[dialect](whole, [], "Hi")
    return RENDER[dialect](calls, [number for number in range(4) for _ in fragments], "Hi")


def as_array(data: bytes) -> bytes:
    """The same turn as Google sends it without ``alt=sse``: one array, each element over several lines."""
    elements = (json.dumps(json.loads(line[6:]), indent=2) for line in data.split(b"\n") if line)
    return ("[" + "\n,\r\n".join(elements) + "\n]").encode()


def recorded(dialect: Dialect) -> list[bytes]:
    """The recordings of a dialect that end well; the vendors' libraries raise in the middle of the others."""
    first, second = ([t for t in transcripts(it) if t.dialect == dialect] for it in (RECORDINGS, MORE_RECORDINGS))
    found = [t for t in first or second if t.answer["outcome"] == "completed" and t.kind == "stream" and not t.options]
    return [t.data for t in found if not any(name in t.key for name in ("mistral", "cererebras", "codecompanion"))]


def payloads(dialect: Dialect, data: bytes) -> list[bytes]:
    if TABLE[dialect].framing is EventStreamReader:
        return list(event_stream.payloads(data))
    if TABLE[dialect].framing is NdjsonReader:
        return data.split(b"\n")[:-1]
    if data.startswith(b"["):
        return [json.dumps(element, indent=2).encode() for element in json.loads(data)]
    return [line[5:] for line in data.splitlines() if line.startswith(b"data:") and b"[DONE]" not in line]


def decode(dialect: Dialect, data: bytes) -> None:
    decoder = TurnDecoder(dialect)
    for at in range(0, len(data), CHUNK):
        decoder.feed(data[at : at + CHUNK])
    assert decoder.eof().outcome == "completed"


def best(*works: Callable[[], object], rounds: int) -> list[float]:
    """The best time of each, in turns, so that a busy machine is busy for all of them."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(rounds):
        for work, spent in zip(works, times, strict=True):
            start = time.process_time()
            work()
            spent.append(time.process_time() - start)
    return [min(spent) for spent in times]


def each_of(work: Callable[[bytes], object], streams: list[bytes]) -> None:
    for data in streams:
        work(data)


def measure(name: str, dialect: Dialect, streams: list[bytes], args: argparse.Namespace) -> DecodeRow:
    repeats = max(1, REPEAT_BYTES // sum(map(len, streams)))
    rounds = streams * repeats
    frames = [payload for data in rounds for payload in payloads(dialect, data)]
    each = 1e6 / len(frames)
    floor, ours = best(
        lambda: [json.loads(frame) for frame in frames],
        lambda: each_of(lambda data: decode(dialect, data), rounds),
        rounds=args.rounds,
    )
    reader = helper = None
    if not args.no_sdk and not streams[0].startswith(b"["):  # no library of Google's reads the array
        from tests.support.stream.vendor_sdks import CALLS, READ

        reader = best(lambda: each_of(lambda data: exhaust(READ[dialect](data)), rounds), rounds=1)[0] * each
        if len(streams) > 1:  # on one turn of 10,000 events a helper that parses again after each takes minutes
            helper = best(lambda: each_of(CALLS[dialect], rounds), rounds=1)[0] * each
    return DecodeRow(name, len(rounds), len(frames), floor * each, ours * each, reader, helper)


def exhaust(events: Iterator[object]) -> None:
    for _ in events:
        pass


def rows(args: argparse.Namespace) -> Iterator[DecodeRow]:
    for dialect in args.dialect or DIALECTS:
        yield measure(f"{dialect}, one turn", dialect, [synthetic(dialect)], args)
        if dialect == "google-generate":
            yield measure(f"{dialect}, one turn as an array", dialect, [as_array(synthetic(dialect))], args)
        if streams := recorded(dialect):
            yield measure(f"{dialect}, recordings", dialect, streams, args)


HEAD = """
| stream | events | floor us | ours us | at most us | ours / floor | vendor's reader / ours | vendor's helper / ours |
|---|---|---|---|---|---|---|---|"""


def line(row: DecodeRow) -> str:
    against = [f"{other / row.ours:.1f}" if other else "-" for other in (row.reader, row.helper)]
    most = f"{row.most:.1f}" if row.ours <= row.most else f"**{row.most:.1f}**"
    numbers = f"{row.floor:.1f} | {row.ours:.1f} | {most} | {row.ours / row.floor:.2f} | {against[0]} | {against[1]}"
    return f"| {row.stream} | {row.events} | {numbers} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--no-sdk", action="store_true", help="leave the vendors' libraries out")
    parser.add_argument("--dialect", action="append", choices=DIALECTS, help="only this one; may come again")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of the floor and of ours (%(default)s)")
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # the vendors' libraries' own deprecations
    os.environ.setdefault("OPENAI_LOG", "")
    if args.json:
        print(json.dumps([asdict(row) | {"most": row.most} for row in rows(args)], indent=1))
        return
    print(HEAD.strip())
    for row in rows(args):
        print(line(row), flush=True)


if __name__ == "__main__":
    main()
