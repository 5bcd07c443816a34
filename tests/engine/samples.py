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


# A template of bulletins with five numbers each.
FORECAST = (
    "本市气象台发布天气预报：今天白天最高气温{}度，夜间最低气温{}度，相对湿度百分之{}，风力{}级，空气质量指数{}。"
    "请市民出门携带雨具，注意添减衣物，老人和儿童尽量减少户外活动，驾车时请保持车距，遇到积水路段请绕行。"
    "气象台将继续关注天气变化，及时发布最新预报和预警信息，市民可以拨打服务电话或者通过手机客户端查询。"
)
# With tables that find most of what the landmarks find.
WIDE = {"tables": 8, "prefix_bits": 24, "probes": 128, "max_distance": 12}
# For engines that are cheap to create, and that treat texts purely as sets of n-grams.
LIGHT = settings(idf={"epoch_articles": 10}, simhash={**WIDE, "prefix_bits": 16}, verify={"numbers_overlap": 0})
