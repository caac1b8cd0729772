"""Prometheus counters inside a harness, from the logs of `toolonce.stream`: replays, conflicts, turns that ended badly.

Use it in your own process:

    from toolonce.ops.metrics.harness_metrics import count_logs
    count_logs()                                     # adds them to the metrics of your process
"""

from __future__ import annotations

import logging

from prometheus_client import REGISTRY, CollectorRegistry, Counter

NAMES_MOST = 200
"""Most tools with a label of their own, since models invent names and labels are never freed."""


class CountingHandler(logging.Handler):
    """Counts log records by their `event`; prints nothing."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(logging.INFO)
        self._names: set[str] = set()
        self._replays = Counter("toolonce_replays", "Calls answered from the store", ["tool"], registry=registry)
        self._conflicts = Counter("toolonce_conflicts", "Calls refused as conflicts", ["tool"], registry=registry)
        self._turns = Counter(
            "toolonce_turns_ended_badly", "Turns that gave no calls", ["dialect", "outcome"], registry=registry
        )
        self._tokens = Counter(
            "toolonce_wasted_tokens", "Output tokens of turns that gave no calls", ["dialect"], registry=registry
        )

    def emit(self, record: logging.LogRecord) -> None:
        facts = record.__dict__
        match facts.get("event"):
            case "replay":
                self._replays.labels(self._label(facts["tool"])).inc()
            case "conflict":
                self._conflicts.labels(self._label(facts["tool"])).inc()
            case "turn_ended_badly":
                self._turns.labels(facts["dialect"], facts["state"]).inc()
                self._tokens.labels(facts["dialect"]).inc(facts["tokens"] or 0)

    def _label(self, tool: str) -> str:
        if len(self._names) < NAMES_MOST:
            self._names.add(tool)
        return tool if tool in self._names else "?"


def count_logs(registry: CollectorRegistry = REGISTRY) -> CountingHandler:
    """Count from now on; once per process. Remove the handler from logger ``toolonce.stream`` to stop."""
    handler = CountingHandler(registry)
    logger = logging.getLogger("toolonce.stream")
    logger.addHandler(handler)
    if logger.getEffectiveLevel() > logging.INFO:
        logger.setLevel(logging.INFO)  # the level of replays
    return handler
