"""The Job class that the worker gives to RQ: it refuses to load, to call back or to execute anything.

RQ finds functions and callbacks by import paths that stand in Redis, and would import and call whatever somebody wrote
there. This class never does, whatever the job hash says.
"""

from __future__ import annotations

from typing import Any, NoReturn

from rq.job import Job

from ..tools.errors import NotThroughRQ


def _refuse(job: Job) -> NoReturn:
    raise NotThroughRQ(f"job {job.id:.80} names code; nothing that Redis names is imported or run")


class Pointer(Job):
    """A job that can be listed and counted, and nothing else."""

    @property
    def func(self) -> NoReturn:
        _refuse(self)

    @property
    def success_callback(self) -> None:
        return None

    @property
    def failure_callback(self) -> None:
        return None

    @property
    def stopped_callback(self) -> None:
        return None

    def perform(self) -> NoReturn:
        _refuse(self)

    def _execute(self) -> Any:
        _refuse(self)

    def _deserialize_data(self) -> NoReturn:
        _refuse(self)
