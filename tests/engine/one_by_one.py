"""The sample stream judged one article at a time, which is what any other way of judging it is compared with.

Knows settings that make epochs and windows short; knows nothing of what a test expects.
"""

from collections.abc import Sequence
from functools import cache
from itertools import pairwise

from stream_dedup import Article, Decision, Deduplicator, EngineSettings
from tests.engine.samples import articles, settings

EPOCH = 100
SETTINGS = settings(idf={"epoch_articles": EPOCH}, window={"days": 7})
REPOST = "本报讯（记者 李明）"


@cache
def one_by_one() -> tuple[Decision, ...]:
    """Return the decisions on the sample stream, each article judged alone."""
    with Deduplicator(settings=SETTINGS) as engine:
        return tuple(engine.add(article) for article in articles())


def decisions_on(
    stream: Sequence[Article], cuts: Sequence[int], engine_settings: EngineSettings = SETTINGS
) -> list[Decision]:
    """Return the decisions on a stream that is cut into batches at the given indices."""
    with Deduplicator(settings=engine_settings) as engine:
        return [
            decision
            for start, stop in pairwise([0, *cuts, len(stream)])
            for decision in engine.add_batch(stream[start:stop])
        ]
