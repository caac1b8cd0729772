"""The highest fence that this process has seen; by it a store that has lost writes is found out.

Every claim carries it, and every round of recovery compares it, so that also an idle process would notice.
"""

from __future__ import annotations

from collections.abc import Callable

from ...store.connections.connection import Connection
from ...store.operations.fence_watermark import FenceWatermark, fence_watermark


class ConfirmedWatermark(FenceWatermark):
    """The mark of one worker process.

    Args:
        confirm: whether enough replicas have what was written so far. What a failover may forget is not remembered: it
            would hold every mutating call after a failover that has lost none of them.
    """

    def __init__(self, confirm: Callable[[], bool] = lambda: True) -> None:
        super().__init__()
        self._confirm = confirm

    def compare(self, connection: Connection) -> bool:
        """Learn what the server knows, or tell it what it has forgotten; whether enough replicas have that.

        Raises:
            StoreUnavailable: the server does not answer.
        """
        fence = connection.run(fence_watermark(connection.space, self.seen))
        if not self._confirm():
            return False
        self.note(fence)
        return True
