"""The role of a warm standby: the state follows the changelog until this process owns the index.

Knows when a standby is ready to take over; knows nothing of the input.
"""

from stream_dedup.observe.health import Awaited
from stream_dedup.stream.parts import ServiceParts

_FOLLOW_SECONDS = 0.1  # to wait for the next record


def stand_by(parts: ServiceParts) -> None:
    """Follow the changelog until this process owns the index or a stop is requested.

    Raises:
        ChangelogError: the changelog cannot be read.
        BrokerError: the broker refuses.
        StoreError: the state cannot be read or written.
    """
    parts.metrics.show_role("standby")
    parts.meter.idle()
    follower = parts.follower()
    while not (parts.life.stopping.is_set() or parts.ownership.owner):
        follower.follow(_FOLLOW_SECONDS)
        parts.reader.bounds()
        left = follower.remaining
        parts.meter.following(follower.position, left)
        parts.snapshots.turn()
        behind = left > parts.settings.state.lag_records
        parts.life.health.set_waiting_for(Awaited.REPLAY if behind else None, f"{left:,} records left")
