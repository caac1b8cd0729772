"""One outcome, three ways out: Python, the command line and the inbox say the same of it, under the same names."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.processes.command_line import CommandLine
from tests.support.store.scene import spec
from tests.support.stream.inbox import Inbox
from toolonce.store.model.outcomes import Failure
from toolonce.store.model.states import State
from toolonce.store.operations.recovery import purge
from toolonce.store.operations.runs import interrupt
from toolonce.store.operations.tools import publish

JSON_TEXTS = ("result", "error", "marks")
ONLY_ASKED = {"turn", "idempotency_key", "replayed", "attempt"}
"""What a harness that reads its inbox knows or does not need."""


def read(fields: dict[str, str]) -> dict[str, Any]:
    """An answer of the inbox as PROTOCOL.md says that it is read: empty texts stand for what is not there."""
    form: dict[str, Any] = {name: text for name, text in fields.items() if name not in JSON_TEXTS}
    form |= {"position": int(fields["position"]), "id": fields["id"] or None, "reply_id": fields["reply_id"] or None}
    return form | {name: json.loads(fields[name]) for name in JSON_TEXTS if fields[name]}


def test_python_the_command_line_and_the_inbox_give_one_form_of_an_outcome(
    box: Inbox, capsys: pytest.CaptureFixture[str]
) -> None:
    scene, bench = box.bench.scene, box.bench
    calls = [{"name": "pay", "arguments": {"n": number}, "id": f"c{number}"} for number in range(3)]
    calls.append({"name": "pay", "arguments": {"n": "many"}, "id": "c3"})
    entry = box.add(scope="talk", turn="1", calls=calls)
    box.step()  # type: ignore[attr-defined]
    bench.run_next(None)
    scene.settle(scene.take(), state=State.FAILED)
    scene.settle(scene.take(), state=State.UNKNOWN)

    batch = bench.another_client("acme/talk").batch("1")
    outcomes = [outcome.to_json() for outcome in batch.outcomes]
    command = CommandLine(capsys, ["--redis", bench.url, "--namespace", bench.namespace])
    said = command("wait", "--scope", "acme/talk", "1", "--timeout", "0", "--json").json["outcomes"]
    _, *answers = box.answers(entry)
    told = sorted((read(answer) for answer in answers), key=lambda answer: answer["position"])

    assert [outcome["state"] for outcome in outcomes] == ["succeeded", "failed", "unknown", "refused"]
    assert outcomes[0]["result"] is None
    assert said == json.loads(json.dumps(outcomes))
    assert told == [{name: it for name, it in one.items() if name not in ONLY_ASKED} for one in outcomes]


def test_a_call_that_was_forgotten_stopped_lost_or_resolved_is_told_alike_by_python_and_the_inbox(box: Inbox) -> None:
    scene, space = box.bench.scene, box.bench.scene.space
    calls = [{"name": "pay", "arguments": {"n": number}, "id": f"c{number}"} for number in range(8)]
    box.add(scope="talk", turn="1", calls=calls)
    box.step()  # type: ignore[attr-defined]
    forgotten, stopped, stopped_failing, lost, resolved, refuted, stopped_lost = (scene.take() for _ in range(7))
    scene.settle(forgotten, 5)
    scene.run(purge(space, [forgotten.call]))
    for run in (stopped, stopped_failing, stopped_lost):
        scene.cancel(run.call)
    scene.settle(stopped, 6)
    scene.fail(stopped_failing)
    for run in (lost, resolved, refuted, stopped_lost):
        scene.run(interrupt(space, run, reason="lost"))
    scene.resolve(resolved.call, '"found"')
    scene.resolve(refuted.call, Failure("absent", "it is not there", {"looked": 1}))
    scene.cancel(box.bench.another_client("acme/talk").batch("1").outcomes[7].key)

    entry = box.add(scope="talk", turn="1", calls=calls)
    box.step()  # type: ignore[attr-defined]
    outcomes = [outcome.to_json() for outcome in box.bench.another_client("acme/talk").batch("1").outcomes]
    _, *answers = box.answers(entry)
    told = sorted((read(answer) for answer in answers), key=lambda answer: answer["position"])

    assert ("result" in outcomes[0], outcomes[0]["marks"]["forgotten"], outcomes[0]["marks"]["size"]) == (
        False,
        True,
        1,
    )
    assert told == [{name: it for name, it in one.items() if name not in ONLY_ASKED} for one in outcomes]


def test_a_call_that_follows_another_one_is_told_alike_by_python_and_the_inbox(box: Inbox) -> None:
    scene = box.bench.scene
    scene.run(publish(scene.space, [spec("bill", unique_by=("n",), schema={"required": ["n"]})]))
    calls = [{"name": "bill", "arguments": {"n": 1, "x": number // 2}, "id": f"c{number}"} for number in range(4)]
    entry = box.add(scope="talk", turn="1", calls=calls)
    box.step()  # type: ignore[attr-defined]
    scene.settle(scene.take(), {"id": 7})
    later = box.add(scope="talk", turn="2", calls=calls[:1])
    box.step()  # type: ignore[attr-defined]

    client = box.bench.another_client("acme/talk")
    outcomes = [outcome.to_json() for turn in "12" for outcome in client.batch(turn).outcomes]
    told = [*sorted((read(answer) for answer in box.answers(entry)[1:]), key=lambda answer: answer["position"])]
    told += [read(answer) for answer in box.answers(later)[1:]]

    assert [outcome["state"] for outcome in outcomes] == ["succeeded", "succeeded", "refused", "refused", "succeeded"]
    assert [outcome["replayed"] for outcome in outcomes] == [False, True, False, False, True]
    assert outcomes[1]["marks"] == {"follows": outcomes[0]["call"]}
    assert outcomes[2]["error"]["details"]["first"]["call"] == outcomes[0]["call"]
    assert told == [{name: it for name, it in one.items() if name not in ONLY_ASKED} for one in outcomes]
