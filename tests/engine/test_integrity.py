"""What contradicts itself in a state is a fault that is told, also without a changelog to compare it with.

Knows what the families hold; damaged files, and what `state verify` makes of faults, are tested in tests/stream/state.
"""

import re
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from stream_dedup import Deduplicator
from stream_dedup.engine.clusters import Cluster, Member
from stream_dedup.index.records.counts import delta_puts, epoch_puts, line_delta_puts
from stream_dedup.index.records.generations import EXPIRING
from stream_dedup.index.records.records import ArticleRecord, generation_prefix, key_of
from stream_dedup.index.stores.store import Family, Put
from stream_dedup.text.idf import COUNT_DTYPE, Counts, DocumentCounts
from tests.engine.model import BEGIN, DAY, article, engine_settings
from tests.engine.sound import faults

_SETTINGS = engine_settings(2)
_MANY = 50  # more than there are articles
_NOBODY = 77  # the number of no entry


@pytest.fixture
def engine() -> Iterator[Deduplicator]:
    """A state whose first generation has expired, with a cluster of three: canonical, in reserve, and drifted."""
    with Deduplicator(settings=_SETTINGS) as engine:
        for days in (-20, -10, 0):
            engine.add(article(f"{days} days", 2, at=BEGIN + days * DAY))
        engine.add_batch([article("a"), article("b", variant=1), article("drifted", variant=3), article("x", 1)])
        assert engine.progress.live == (1, 2)
        assert not faults(engine, _SETTINGS)
        yield engine


def _key(engine: Deduplicator, key: bytes) -> bytes:
    return generation_prefix(engine.progress.generation) + key


def _record(engine: Deduplicator, name: str) -> ArticleRecord:
    (value,) = engine.state.store.get_many(Family.ARTICLES, [_key(engine, name.encode())])
    assert value is not None
    return ArticleRecord.unpack(value)


def _entry(engine: Deduplicator, name: str) -> int:
    return _record(engine, name).entries[0]


def _with_entry(engine: Deduplicator, name: str, entry: int) -> Put:
    changed = _record(engine, name)._replace(entries=(entry,))
    return Put(Family.ARTICLES, _key(engine, name.encode()), changed.pack())


def _cluster(engine: Deduplicator) -> Cluster:
    ((_, value),) = engine.state.store.items(Family.CLUSTERS)
    return Cluster.unpack(value)


def _stored(engine: Deduplicator, cluster: Cluster, number: int | None = None) -> Put:
    key = key_of(cluster.number if number is None else number)
    return Put(Family.CLUSTERS, _key(engine, key), cluster.pack())


def _with_member(engine: Deduplicator, change: Callable[[Member], Member]) -> Put:
    """Return the write that changes the first member of the cluster."""
    cluster = _cluster(engine)
    first, *others = cluster.members
    return _stored(engine, cluster._replace(members=(change(first), *others)))


def _counted(times: int) -> Counts:
    return np.array([(1, times)], COUNT_DTYPE)


def _many_documents(engine: Deduplicator) -> list[Put]:
    counts = DocumentCounts(_SETTINGS.idf.max_words)
    counts.add(_MANY, _counted(1))
    return list(epoch_puts(engine.state.store, counts.freeze(engine.epoch.number)))


def _copied(engine: Deduplicator, name: str, number: int) -> Put:
    (value,) = engine.state.store.get_many(Family.ENTRIES, [key_of(_entry(engine, name))])
    return Put(Family.ENTRIES, key_of(number), value)


_WRONGS: dict[str, Callable[[Deduplicator], list[Put]]] = {
    r"article 'x' has entry 77, which does not exist": lambda engine: [_with_entry(engine, "x", _NOBODY)],
    r"article 'x' has entry \d, which belongs to 'a'": lambda engine: [_with_entry(engine, "x", _entry(engine, "a"))],
    r"cluster \d is stored under the key 0+4d$": lambda engine: [_stored(engine, _cluster(engine), _NOBODY)],
    r"cluster \d has 3 copies, but its sources do not add up": lambda engine: [
        _stored(engine, _cluster(engine)._replace(copies=3))
    ],
    r"cluster \d does not have its canonical article 'nobody' among": lambda engine: [
        _stored(engine, _cluster(engine)._replace(canonical="nobody"))
    ],
    r"cluster \d: entry 77 of 'a' does not exist": lambda engine: [
        _with_member(engine, lambda member: member._replace(entry=_NOBODY))
    ],
    r"entry \d of 'a' contradicts its member's active = False": lambda engine: [
        _with_member(engine, lambda member: member._replace(active=False))
    ],
    r"entry \d of 'a' belongs to cluster \d": lambda engine: [
        _with_member(engine, lambda member: member._replace(entry=_entry(engine, "x")))
    ],
    r"entry 77 is not between \d and \d": lambda engine: [_copied(engine, "x", _NOBODY)],
    r"entry 0 is not between \d and \d": lambda engine: [_copied(engine, "x", 0)],
    r"50 documents are counted, more than the 7 articles judged": _many_documents,
    r"a word is counted in 50 documents, more than the total of": lambda engine: [
        *delta_puts(99, engine.epoch.number, 0, _counted(_MANY))
    ],
    r"a line is counted in 50 articles, more than the total of 7": lambda engine: [
        *line_delta_puts(99, engine.epoch.number, 1, _counted(_MANY))
    ],
}


@pytest.mark.parametrize("told", _WRONGS)
def test_contradiction_is_told(told: str, engine: Deduplicator) -> None:
    """Each kind has a line of its own, which says where it is."""
    engine.state.store.write(_WRONGS[told](engine))
    assert any(re.search(told, fault) for fault in faults(engine, _SETTINGS))


@pytest.mark.parametrize("generation", [0, 3], ids=["expired", "to come"])
@pytest.mark.parametrize("family", EXPIRING)
def test_key_of_a_generation_that_is_not_live_is_told(family: Family, generation: int, engine: Deduplicator) -> None:
    """Nothing would ever remove it: neither what an expired one has left nor what came too soon."""
    engine.state.store.write([Put(family, generation_prefix(generation) + bytes(24), b"rest")])
    assert faults(engine, _SETTINGS) == [f"{family} has a key of generation {generation}, which is not a live one"]
