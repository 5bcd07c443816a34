"""What contradicts itself in a state is a fault that is told, also without a changelog to compare it with.

Knows what the families hold; damaged files, and what `state verify` makes of faults, are tested in tests/stream/state.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from stream_dedup import Article, Deduplicator
from stream_dedup.engine.clusters import Cluster, Member
from stream_dedup.engine.integrity import Integrity, differences
from stream_dedup.index.records.counts import delta_puts, epoch_puts, line_delta_puts
from stream_dedup.index.records.generations import EXPIRING
from stream_dedup.index.records.ledger import start_put
from stream_dedup.index.records.records import ArticleRecord, generation_prefix, key_of
from stream_dedup.index.runs.shelf import RUN_KEYS
from stream_dedup.index.stores.store import Family, MemoryStore, Put
from stream_dedup.text.idf import COUNT_DTYPE, Counts, DocumentCounts
from stream_dedup.text.learnt import learn_rule_of
from tests.engine.model import BEGIN, DAY, HOUR, article, engine_settings
from tests.engine.samples import FORECAST, bodies, settings
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
    # The oldest that is live: with another text it has other keys.
    r"entry \d is in the list of key [0-9a-f]+ of kind \w+, which is not one": lambda engine: [
        _copied(engine, "x", engine.progress.floor)
    ],
    r"50 documents are counted, more than the 7 articles judged": _many_documents,
    r"a word is counted in 50 documents, more than the total of": lambda engine: [
        *delta_puts(99, engine.epoch.number, 0, _counted(_MANY))
    ],
    r"a word is counted in 7 documents, more than the total of [1-6]$": lambda engine: [
        *delta_puts(99, engine.epoch.number, 0, _counted(7))
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


def test_end_of_a_state_is_behind_its_last_entry(engine: Deduplicator) -> None:
    """One more entry than there should be is a fault, and so is each posting of it."""
    state, last = engine.state, engine.progress.entries - 1
    progress = replace(engine.progress, entries=last)
    checked = Integrity(state.store, state.index, progress, lambda _what, _count: None)
    told = list(checked.faults(_SETTINGS.idf.max_words, learn_rule_of(_SETTINGS.text)))
    assert told[0] == f"entry {last} is not between {progress.floor} and {last}"
    postings = [fault for fault in told if fault.endswith(f" has entry {last}, but the next new one is {last}")]
    assert postings == told[1:] != []


def test_bounds_that_are_met_are_no_fault(engine: Deduplicator) -> None:
    """Sources may be beyond those counted by name, and copies count for lines though not for words."""
    cluster = _cluster(engine)
    others = cluster._replace(sources={}, other_members=cluster.copies + 1)
    lines = line_delta_puts(99, engine.epoch.number, 1, _counted(engine.progress.judged))
    engine.state.store.write([_stored(engine, others), *lines])
    assert not faults(engine, _SETTINGS)
    with Deduplicator(settings=_SETTINGS) as unique:
        unique.add_batch([Article(f"{number}", body) for number, body in enumerate(bodies()[:3])])
        assert unique.state.epoch_state.counts.documents == unique.progress.judged == 3
        assert not faults(unique, _SETTINGS)


def test_full_lists_and_expired_texts_are_no_fault() -> None:
    """A list forgets its oldest entries, and an article that goes on changing the texts of expired generations."""
    crowded = settings(landmarks={"cap": 4}, simhash={"enabled": False})
    with Deduplicator(settings=crowded) as engine:
        judged = engine.process([Article(f"{n}", FORECAST.format(*range(n * 100, n * 100 + 5))) for n in range(12)])
        assert judged.tally.hot_keys.any()
        assert not faults(engine, crowded)
    with Deduplicator(settings=_SETTINGS) as engine:
        for hours, body in zip((0, 30, 60, 90, 91), bodies(), strict=False):
            engine.add(replace(article("a", at=BEGIN + hours * HOUR), body=body))
        assert _record(engine, "a").entries[-1] < engine.progress.floor
        assert not faults(engine, _SETTINGS)


def test_differences_are_those_that_matter() -> None:
    """Each family's first, with both sides; where the changelog begins, and what repeats the entries, is left out."""
    here, there = MemoryStore(), MemoryStore()
    runs, starts = Put(Family.META, RUN_KEYS[0] + b"1", b"r"), start_put(7, 9)
    here.write([Put(Family.URLS, b"key", b"a"), Put(Family.URLS, b"more", b"c"), runs, starts])
    there.write([Put(Family.URLS, b"key", b"b")])
    told = [f"{Family.URLS}: 'key' = 61 (1 bytes) here, 'key' = 62 (1 bytes) according to the changelog"]
    assert list(differences(here, there, lambda _what, _count: None)) == told
    here.write([Put(Family.URLS, b"key", b"b")])
    told = [f"{Family.URLS}: 'more' = 63 (1 bytes) here, nothing more according to the changelog"]
    assert list(differences(here, there, lambda _what, _count: None)) == told
