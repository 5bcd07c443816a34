"""The role of a warm standby: the state follows the changelog until this process owns the index.

Knows when a standby is ready to take over; knows nothing of the input.
"""

from stream_dedup.stream.equipment import REPLAY, Equipment

_FOLLOW_SECONDS = 0.1  # to wait for the next record


def stand_by(kit: Equipment) -> None:
    """Follow the changelog until this process owns the index or a stop is requested.

    Raises:
        ChangelogError: the changelog cannot be read.
        BrokerError: the broker refuses.
        StoreError: the state cannot be read or written.
    """
    kit.metrics.become("standby")
    kit.meter.idle()
    follower = kit.follower()
    while not (kit.life.stopping.is_set() or kit.ownership.owner):
        follower.follow(_FOLLOW_SECONDS)
        kit.reader.bounds()
        left = follower.remaining
        kit.meter.following(follower.position, left)
        kit.upkeep.turn(kit.engine.progress)
        behind = left > kit.settings.state.lag_records
        kit.life.health.wait_for(f"{REPLAY}: {left:,} records left" if behind else "")
