"""The cost of an article in counts, which have no noise: a change that makes it dearer shows here, not in a timing.

The limits are a tenth above the counts when they were set. To go over one, raise it and give the reason in the
commit.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from stream_dedup import Deduplicator, EngineSettings
from stream_dedup.index.runs import shelf
from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.index.stores.store import Drop, Write
from stream_dedup.settings import InputSettings
from tests.benchmarks.throughput.articles import decoded, sample_articles

_ARTICLES, _BATCH = 4_000, 500
_YOUNG = 256  # entries, so that most posting lists are in runs, as in an index of millions
_WITHIN = 1.1


def _bytes(writes: list[Write]) -> Iterator[int]:
    for write in writes:
        if not isinstance(write, Drop):
            yield sum(len(key) + len(value or b"") for key, value in write.pairs())


@pytest.fixture(scope="module")
def counts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """Figures per article, over articles made from the samples, two fifths of them reposts."""
    articles = decoded(sample_articles(_ARTICLES), InputSettings())
    totals = dict.fromkeys(("candidates", "confirmed", "written"), 0.0)
    directory: Path = tmp_path_factory.mktemp("counts")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shelf, "YOUNG_ENTRIES", _YOUNG)
        with Deduplicator(settings=EngineSettings(), store=RocksStore(directory)) as engine:
            for start in range(0, _ARTICLES, _BATCH):
                judged = engine.decide(articles[start : start + _BATCH])
                totals["candidates"] += int(judged.tally.candidates.sum())
                totals["confirmed"] += int(judged.tally.confirmed.sum())
                totals["written"] += sum(_bytes(list(judged.change.writes)))
                engine.apply(judged.change)
                # Merges end at any time. Here they end before the next batch, so that the counts are reproducible.
                engine.state.index.shelf.finish_merges(engine.progress)
            lists = engine.state.index.shelf
            totals |= {"keys": lists.reads.keys, "blocks": lists.reads.blocks}
            totals["files"] = sum(path.stat().st_size for path in (directory / "files").iterdir())
    return {name: total / _ARTICLES for name, total in totals.items()}


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("keys", 24.5),  # posting lists looked up
        ("blocks", 1.68),  # read from files
        ("candidates", 1.23),  # entries compared
        ("written", 1_061.0),  # bytes written to the store
        ("files", 246.0),  # bytes of posting lists
    ],
)
def test_an_article_costs_no_more(counts: dict[str, float], name: str, limit: float) -> None:
    """No count is over its limit, nor below half of it: such a limit would no longer catch anything."""
    assert limit / 2 < counts[name] <= limit * _WITHIN, str(counts)
