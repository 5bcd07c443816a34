"""Articles for the engine's tests: the sample stream decoded, and texts to make more from.

Knows where articles come from; knows nothing of what a test expects.
"""

from datetime import UTC, datetime
from functools import cache
from typing import Any

from deploy.demo.samples import sample_stream
from deploy.demo.samples.corpus import Form, base_texts
from stream_dedup import Article, EngineSettings, Origin
from stream_dedup.decode import Decoder
from stream_dedup.settings import InputSettings

_NOW_MS = round(datetime(2026, 10, 19, tzinfo=UTC).timestamp() * 1000)


@cache
def articles(seed: int = 20) -> tuple[Article, ...]:
    """Return the sound articles of a sample stream in order of arrival."""
    decoder = Decoder(InputSettings())
    items = (
        decoder.decode(sample.value, _NOW_MS, Origin("articles.in", 0, place, _NOW_MS))
        for place, sample in enumerate(sample_stream(seed))
        if sample.dead_reason is None
    )
    return tuple(item for item in items if isinstance(item, Article))


@cache
def bodies() -> tuple[str, ...]:
    """Return bodies of news that are no copies of one another."""
    return tuple(text.body for text in base_texts() if text.form is Form.NEWS)


def settings(**groups: dict[str, Any]) -> EngineSettings:
    """Return the default settings but for some, by group."""
    return EngineSettings.model_validate(groups)


# Of tables that find on their own most of what the landmarks find.
WIDE = {"tables": 8, "prefix_bits": 24, "probes": 128, "max_distance": 12}
# Of engines that are made in a moment, and for which texts are sets of n-grams alone.
LIGHT = settings(idf={"epoch_articles": 10}, simhash={**WIDE, "prefix_bits": 16}, verify={"numbers_overlap": 0})
