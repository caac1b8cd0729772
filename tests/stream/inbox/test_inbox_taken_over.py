"""An inbox entry that two consumers hold, since one of them was thought dead: it is dealt with once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.stream.harness import Bench
from tests.support.stream.inbox import Inbox
from toolonce.stream.inbox import consumer as inbox
from toolonce.stream.inbox.consumer import Consumer
from toolonce.stream.inbox.entry import read_entry


def test_an_entry_that_another_consumer_quarantined_meanwhile_is_neither_quarantined_nor_counted_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    box = Inbox(bench)
    slow, quick = (Consumer(bench.store.connection, name=name) for name in ("slow", "quick"))

    def overtaken(*entry: Any, **more: Any) -> Any:
        monkeypatch.setattr(inbox, "read_entry", read_entry)
        assert quick.step(0.01) == 1
        return read_entry(*entry, **more)

    monkeypatch.setattr(inbox, "IDLE_MS", 0)
    monkeypatch.setattr(inbox, "read_entry", overtaken)
    entry = box.add(scope="talk", turn="1", calls="no JSON")
    assert slow.step(0.01) == 1

    assert (slow.quarantined, quick.quarantined) == (0, 1)
    assert [quarantined[1] for quarantined in box.quarantined()] == [entry]
    assert [answer["state"] for answer in box.answers(entry)] == ["quarantined"]
    assert caplog.text.count("quarantined: ") == 1
    for consumer in (slow, quick):
        consumer.close()
