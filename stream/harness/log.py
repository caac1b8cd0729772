"""What submissions log: calls answered from the store, and conflicts. Never arguments or values.

Each line carries its facts as fields (`extra`), so that handlers may count them;
`toolonce.ops.metrics.harness_metrics` does.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from ...store.model.outcomes import Outcome
from ...store.model.plain import visible

_LOG = logging.getLogger("toolonce.stream")


def tell_answers(scope: str, turn_id: str, outcomes: Iterable[Outcome]) -> None:
    """Log which calls of a submission were answered from the store, and which clash with it."""
    for outcome in outcomes:
        if not outcome.replayed and not outcome.conflict:
            continue
        event = "conflict" if outcome.conflict else "replay"
        level = logging.WARNING if outcome.conflict else logging.INFO
        if not _LOG.isEnabledFor(level):
            continue
        facts = {"event": event, "call": outcome.key, "tool": outcome.tool, "scope": scope, "turn": turn_id}
        _LOG.log(level, "%s of call %s (%s)", event, outcome.key, visible(outcome.tool), extra=facts)
