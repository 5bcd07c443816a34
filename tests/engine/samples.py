"""Articles for the engine's tests: the decoded sample stream, and texts to make more from.

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
    """Return the valid articles of a sample stream in order of arrival."""
    decoder = Decoder(InputSettings())
    items = (
        decoder.decode(sample.value, _NOW_MS, Origin("articles.in", 0, place, _NOW_MS))
        for place, sample in enumerate(sample_stream(seed))
        if sample.dead_reason is None
    )
    return tuple(item for item in items if isinstance(item, Article))


@cache
def bodies() -> tuple[str, ...]:
    """Return news bodies, none a copy of another."""
    return tuple(text.body for text in base_texts() if text.form is Form.NEWS)


def settings(**groups: dict[str, Any]) -> EngineSettings:
    """Return the default settings with some changed, by group."""
    return EngineSettings.model_validate(groups)


# With tables that find most of what the landmarks find.
WIDE = {"tables": 8, "prefix_bits": 24, "probes": 128, "max_distance": 12}
# For engines that are cheap to create, and that treat texts purely as sets of n-grams.
LIGHT = settings(idf={"epoch_articles": 10}, simhash={**WIDE, "prefix_bits": 16}, verify={"numbers_overlap": 0})
