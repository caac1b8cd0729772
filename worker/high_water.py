"""The highest fence that this process has seen; by it a store that has lost writes is found out.

Every claim carries it, and every round of the sweep compares it, so that also an idle process would notice.
"""

from __future__ import annotations

from ..store.connection import Connection
from ..store.fence_watermark import FenceWatermark, high_water


class HighWater(FenceWatermark):
    """The mark of one worker process."""

    def compare(self, connection: Connection) -> None:
        """Learn what the server knows, or tell it what it has forgotten.

        Raises:
            StoreUnavailable: the server does not answer.
        """
        self.note(connection.run(high_water(connection.space, self.seen)))
