"""Records of the articles that a batch touches, and names under their URLs: visible at once, and written once."""

import pytest

from stream_dedup.article import Article, Relation
from stream_dedup.engine.record_changes import RecordChanges
from stream_dedup.index.records.generations import put_records
from stream_dedup.index.records.new_records import NewRecord
from stream_dedup.index.records.records import ArticleRecord
from stream_dedup.index.stores.store import Family, MemoryStore

_LIVE = [0, 1]
_RECORD = ArticleRecord((1,), (), 100, 3, 7, 9, Relation.NEAR, 0, 0, "", None)


def _changes(store: MemoryStore) -> RecordChanges:
    return RecordChanges(store, _LIVE)


def _commit(store: MemoryStore, records: RecordChanges) -> None:
    for puts in records.writes():
        store.write(list(put_records(puts, _LIVE)))


def test_record_is_seen_as_of_now() -> None:
    """What is recorded or forgotten is visible both before and after it is written."""
    store = MemoryStore()
    records = _changes(store)
    assert records.record("a") is None
    records.note("a", _RECORD)
    assert records.record("a") == _RECORD
    _commit(store, records)
    later = _changes(store)
    assert later.record("a") == _RECORD
    later.forget("a", _RECORD)
    assert later.record("a") is None
    _commit(store, later)
    assert _changes(store).record("a") is None


def test_new_record_counts_where_it_was_asked_for_before() -> None:
    """An answer that there was none is not remembered beyond the arrival of the article."""
    store = MemoryStore()
    records = _changes(store)
    assert records.record("a") is None
    records.note_new("a", NewRecord(Article("a", "文"), 5, 0, 100, 3, 3, None))
    assert (found := records.record("a")) is not None
    assert (found.contents, found.entries, found.cluster) == ((5,), (3,), 3)
    _commit(store, records)
    assert _changes(store).record("a") == found


@pytest.mark.parametrize("committed", [True, False])
def test_url_has_the_newest_first(committed: bool) -> None:  # noqa: FBT001  # parametrised
    """Articles of a URL are ordered by their newest texts; forgetting any of them keeps the others."""
    store = MemoryStore()
    records = _changes(store)
    for name in ("a", "b", "a", "c"):
        records.note(name, _RECORD._replace(url=77))
        if committed:
            _commit(store, records)
            records = _changes(store)
    assert [*records.owners(77)] == ["c", "a", "b"]
    assert [*records.owners(78)] == []
    for name, left in (("a", ["c", "b"]), ("c", ["b"]), ("b", [])):
        records.forget(name, _RECORD._replace(url=77))
        assert [*records.owners(77)] == left
    _commit(store, records)
    assert list(store.items(Family.URLS)) == []


def test_url_knows_its_newest_articles_only() -> None:
    """However many articles share a URL, only the eight newest are kept."""
    records = _changes(MemoryStore())
    for number in range(20):
        records.note(f"n{number}", _RECORD._replace(url=77))
    assert [*records.owners(77)] == [f"n{number}" for number in range(19, 11, -1)]
