"""The cost of an article in counts, which have no noise: a change that makes it dearer shows here, not in a timing.

The limits are a tenth above the counts when they were set. To go over one, raise it and give the reason in the
commit.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from stream_dedup import Article, Deduplicator, EngineSettings
from stream_dedup.arrays import U64
from stream_dedup.engine import batch
from stream_dedup.engine.versions import PriorVersions, find_prior_versions
from stream_dedup.engine.window import Times
from stream_dedup.index.runs import shelf
from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.index.stores.store import Drop, Store, Write
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
                engine.state.index.shelf.finish(engine.progress)
            lists = engine.state.index.shelf
            totals |= {"keys": lists.reads.keys, "blocks": lists.reads.blocks}
            totals["files"] = sum(path.stat().st_size for path in (directory / "files").iterdir())
    return {name: total / _ARTICLES for name, total in totals.items()}


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("keys", 22.6),  # posting lists looked up
        ("blocks", 1.87),  # read from files
        ("candidates", 1.23),  # entries compared
        ("written", 1_061.0),  # bytes written to the store
        ("files", 246.0),  # bytes of posting lists
    ],
)
def test_an_article_costs_no_more(counts: dict[str, float], name: str, limit: float) -> None:
    """No count is over its limit, nor below half of it: such a limit would no longer catch anything."""
    assert limit / 2 < counts[name] <= limit * _WITHIN, str(counts)


@pytest.mark.parametrize(("ids", "runs"), [(1, 100), (100, 1)])
def test_articles_of_one_url_are_not_looked_at_again_and_again(
    ids: int, runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new text of an id waits for the one before it; looking at all the rest each time would be 50 times as much.

    New ids under one URL are judged together.
    """
    looked_at: list[int] = []

    def counted(
        store: Store, live: Sequence[int], articles: Sequence[Article], contents: U64, times: Times, *, same_url: bool
    ) -> PriorVersions:
        looked_at.append(len(articles))
        return find_prior_versions(store, live, articles, contents, times, same_url=same_url)

    monkeypatch.setattr(batch, "find_prior_versions", counted)
    bodies = [article.body for article in decoded(sample_articles(100), InputSettings())]
    articles = [Article(str(n % ids), f"{n} {body}", url="http://a/") for n, body in enumerate(bodies)]
    with Deduplicator() as engine:
        engine.add_batch(articles)
    assert len(looked_at) == runs
    assert sum(looked_at) < 10 * 100
