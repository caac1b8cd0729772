"""The table of a record's fields: what Python reads through it, and that nobody reads past it."""

from __future__ import annotations

import re
from pathlib import Path

from toolonce.store.model.record import ANSWER_FIELDS, FIELDS, PAGE_FIELDS, RUN_FIELDS, RecordFields

ROOT = Path(__file__).resolve().parents[3]
RAW = re.compile(r"""\bstored(\[["']|\.get\(["'](attempt|fence|state|tool|reason|fp|args|secret|kid|forgotten)["'])""")
OTHER_HASHES = {"worker/runtime/worker_status.py", "worker/tools/handler_result.py", "store/model/outcomes.py"}
"""They read a worker's hash, or JSON, under the same word."""


def test_a_field_is_read_as_what_it_is() -> None:
    record = RecordFields({"attempt": "2", "secret": "1", "begins": "0", "deadline_at": "70", "lanes": "a\nb"})
    assert (record.attempt, record.secret, record.begins, record.deadline_at) == (2, True, False, 70)
    assert record.lanes == ("a", "b")


def test_a_field_that_is_absent_is_read_as_empty() -> None:
    record = RecordFields({})
    assert (record.attempt, record.secret, record.tool, record.lanes) == (0, False, "", ())
    assert (record.deadline_at, record.call_id, record.progress) == (None, None, None)


def test_the_fields_of_a_page_keep_their_order_and_leave_out_what_is_not_stored() -> None:
    record = RecordFields({"fence": "7", "tool": "pay", "reason": ""})
    assert list(record.typed(PAGE_FIELDS).items()) == [("tool", "pay"), ("reason", ""), ("fence", 7)]


def test_each_list_of_fields_names_fields_of_the_table() -> None:
    assert {*ANSWER_FIELDS, *RUN_FIELDS, *PAGE_FIELDS} <= FIELDS.keys()


def test_each_field_says_who_writes_it_and_what_its_absence_means() -> None:
    assert [name for name, field in FIELDS.items() if not (field.writers and field.absent)] == []


def test_no_module_reads_a_record_past_its_types() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for package in ("store", "stream", "worker", "ops")
        for path in (ROOT / package).rglob("*.py")
        if path.relative_to(ROOT).as_posix() not in OTHER_HASHES
        for line in path.read_text("utf-8").splitlines()
        if RAW.search(line)
    ]
    assert found == []
