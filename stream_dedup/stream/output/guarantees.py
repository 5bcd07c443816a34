"""Which writer keeps which guarantee.

Knows the values of `commit.guarantee`; knows nothing of how they are kept.
"""

from collections.abc import Callable

from stream_dedup.settings import Settings
from stream_dedup.stream.kafka.clients import OnStatistics
from stream_dedup.stream.output.at_least_once import AtLeastOnceWriter
from stream_dedup.stream.output.exactly_once import ExactlyOnceWriter
from stream_dedup.stream.output.writer import Writer


def make_writer(
    settings: Settings,
    changelog: str,
    while_waiting: Callable[[], None],
    on_statistics: OnStatistics | None = None,
    ask_group: Callable[[float], bool] = lambda _: True,
) -> Writer:
    """Return a writer that keeps `commit.guarantee`; for the arguments see `AtLeastOnceWriter`."""
    if settings.commit.guarantee == "exactly_once":
        return ExactlyOnceWriter(settings, changelog, while_waiting, on_statistics)
    return AtLeastOnceWriter(settings, changelog, while_waiting, on_statistics, ask_group)
