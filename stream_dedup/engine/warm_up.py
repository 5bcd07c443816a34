"""A short in-memory stream that goes through everything a long one does, so that every loop is compiled beforehand.

Knows what makes epochs end, runs freeze and generations begin; knows nothing of what comes out.
"""

from collections.abc import Callable, Iterator, Sequence

from stream_dedup.article import Article, Withdrawal
from stream_dedup.engine.window import MS_PER_DAY
from stream_dedup.settings import EngineSettings

FROZEN_FROM = 40  # entries after which young lists are frozen: enough for their tables to grow before that
_EPOCH = 10  # articles: the fewest that an epoch may have
_BATCHES, _BATCH = 30, 8
_BEGIN_MS = 1_600_000_000_000
_CHARACTERS = 800
_COMMON, _HAN = 0x4E00, 4_000  # code points of Chinese characters
_SHELL = (
    "<p>本市气象台今天上午发布消息，未来三天多云转晴，最高气温二十八度，早晚温差较大，请市民适时增减衣物。</p>{body}。\n"
    "详情请见 https://example.com/{number} 或关注我们的公众号。\n"
)

Process = Callable[[Sequence[Article | Withdrawal]], object]


def warm_up_settings(settings: EngineSettings) -> EngineSettings:
    """Return settings under which a short stream meets what otherwise only a long one does."""
    idf = settings.idf.model_copy(update={"epoch_articles": _EPOCH, "first_epoch_articles": _EPOCH})
    return settings.model_copy(update={"idf": idf})


def run_warm_up(process: Process, window_days: float) -> None:
    """Let an engine judge the short stream.

    Args:
        process: judges a batch and applies its change.
        window_days: days after which the engine's articles expire.
    """
    items = list(_stream(window_days))
    for at in range(0, len(items), _BATCH):
        process(items[at : at + _BATCH])


def questions() -> list[Article]:
    """Return articles to ask about after the stream: one that was judged, a part of it, and a new one."""
    last = _BATCHES * _BATCH - 1
    texts = (_text(last), _text(last)[: _CHARACTERS // 2], _text(last + 1))
    return [Article("?", text, source="排练") for text in texts]


def _stream(window_days: float) -> Iterator[Article | Withdrawal]:
    """Yield articles over three windows: new ones, copies, new texts, and withdrawals."""
    for number in range(_BATCHES * _BATCH):
        moment = _BEGIN_MS + round(3 * window_days * MS_PER_DAY * number / (_BATCHES * _BATCH))
        kind = number % _BATCH
        text = _text(number - 1 if kind in {3, 5} else number)
        name = number - kind if kind in {2, 6} else number
        yield Article(str(name), text, url=f"https://example.com/{name}", source="排练", published_ms=moment)
        if kind == _BATCH - 1:
            yield Withdrawal(str(number - 3))


def _text(number: int) -> str:
    points = (_COMMON + (7_919 * number + 104_729 * place * (number + 1)) % _HAN for place in range(_CHARACTERS))
    body = "".join(chr(point) + ("，" if point % 17 == 0 else "") for point in points)
    return _SHELL.format(body=f"{body}，共计{number * 37}万元", number=number)
