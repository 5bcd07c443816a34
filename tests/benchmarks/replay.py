"""How fast a lost state is restored from its changelog on a real broker, compared with the engine that made it.

Knows the engine, the changelog's records and its reader; asserts nothing: it prints the figures of one run.
"""

import argparse
import tempfile
import time
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import orjson
from confluent_kafka import Producer
from rich.console import Console

from deploy.broker import kafka_for_session
from stream_dedup import Article, Deduplicator
from stream_dedup.engine.state import State
from stream_dedup.index.changelog import commit_records
from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.settings import Settings
from stream_dedup.stream.kafka.topics import Topics, state_topics
from stream_dedup.stream.state.changelog import ChangelogReader
from stream_dedup.stream.state.replay import ChangelogFollower
from tests.benchmarks.throughput.articles import sample_articles

_BATCH = 512
console = Console(highlight=False)

Records = list[tuple[bytes, bytes | None]]


def decided(count: int) -> tuple[Records, float]:
    """Judge articles made from the samples; return the changelog's records, and the seconds that it took."""
    articles = [
        Article(fields["id"], fields["body"], source="bench", published_ms=1000 * fields["published_at"])
        for fields in map(orjson.loads, sample_articles(count))
    ]
    records: Records = []
    with tempfile.TemporaryDirectory() as directory, Deduplicator(store=RocksStore(Path(directory) / "s")) as engine:
        engine.warm_up()
        began = time.perf_counter()
        for start in range(0, count, _BATCH):
            judged = engine.decide(articles[start : start + _BATCH])
            records += commit_records(engine.commit_of(judged.change, {("bench", 0): start}))
            engine.apply(judged.change)
        return records, time.perf_counter() - began


def write(bootstrap: str, topic: str, records: Records) -> None:
    """Write records to a changelog."""
    # Idempotent: in order, even if the first request is sent before the new topic has a leader.
    properties = {"bootstrap.servers": bootstrap, "compression.type": "lz4", "enable.idempotence": True}
    producer = Producer(properties)
    for key, value in records:
        producer.produce(topic, value, key, partition=0)
        producer.poll(0)
        if len(producer) > 1_000:
            producer.flush()
    producer.flush()


def restored(settings: Settings, topic: str, directory: Path) -> tuple[int, float]:
    """Restore into a new directory; return the number of articles and the seconds."""
    with RocksStore(directory) as store, closing(ChangelogReader(settings, topic)) as reader:
        state = State(store, settings)
        began = time.perf_counter()
        follower = ChangelogFollower(state, reader, topic, lambda: None)
        follower.catch_up(lambda _left: None)
        return follower.replayed, time.perf_counter() - began


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--articles", type=int, default=40_960, help="articles in the changelog (default %(default)s)")
    arguments = parser.parse_args()
    records, seconds = decided(arguments.articles)
    size = sum(len(value or b"") for _, value in records)
    console.print(f"decided {arguments.articles} articles at {arguments.articles / seconds:,.0f}/s")
    console.print(f"changelog: {len(records)} records, {size / arguments.articles:,.0f} bytes per article")
    with kafka_for_session() as bootstrap, tempfile.TemporaryDirectory(prefix="replay-") as directory:
        settings = Settings.model_validate(
            {"kafka": {"bootstrap.servers": bootstrap}, "state": {"name": f"replay-{uuid4().hex[:8]}"}}
        )
        names = state_topics(settings, "bench")
        Topics(settings).prepare(names)
        write(bootstrap, names.changelog, records)
        for turn in range(3):
            articles, took = restored(settings, names.changelog, Path(directory) / str(turn))
            rate, deciding = articles / took, arguments.articles / seconds
            console.print(
                f"restored {articles} articles at {rate:,.0f}/s: {rate / deciding:.1f} times the rate of deciding"
            )


if __name__ == "__main__":
    main()
