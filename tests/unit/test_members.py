"""Members of the clusters that a batch touches: changes are visible at once, and written once."""

import numpy as np
import pytest

from stream_dedup.article import Relation, Succession, SuccessionReason
from stream_dedup.engine.clusters import Cluster, policy_of
from stream_dedup.engine.members import ClusterChanges, member_of
from stream_dedup.engine.window import Moment
from stream_dedup.fingerprint.sketch import LandmarkRule
from stream_dedup.index.entries.entries import RESERVE, SEALED, EntryFormat
from stream_dedup.index.entries.new_entries import NewEntries
from stream_dedup.index.records.generations import put_records
from stream_dedup.index.records.joins import renumbered_key
from stream_dedup.index.records.records import NOT_INDEXED, ArticleRecord, key_of
from stream_dedup.index.stores.store import Family, MemoryStore, Put
from stream_dedup.settings import ClusterSettings

_FORMAT = EntryFormat(16, 4, 4, LandmarkRule(2, 24, 4))
_LIVE = [0, 1]
_NOW = Moment(100, 0)
_LATER = 1 << 60  # of a copy that is newer than all others


def _record(
    entries: tuple[int, ...] = (), *, cluster: int = 0, source: str = "", decided_ms: int = 100
) -> ArticleRecord:
    return ArticleRecord((1,), entries, decided_ms, 3, 7, 9, Relation.NEAR, cluster, 0, source, None)


def _book(store: MemoryStore, first: int = 10, canonical: str = "first_seen", variants: int = 8) -> ClusterChanges:
    policy = policy_of(ClusterSettings.model_validate({"canonical": canonical, "variants": variants}))
    return ClusterChanges(store, _LIVE, _FORMAT, policy, NewEntries(_FORMAT, first))


def _commit(store: MemoryStore, book: ClusterChanges) -> None:
    for puts in book.writes():
        store.write(list(put_records(puts, _LIVE)))


def _entry(store: MemoryStore, number: int, name: str, window_ms: int = 0, flags: int = RESERVE) -> None:
    fixed = np.zeros(1, _FORMAT.layout)
    fixed["window_ms"], fixed["flags"], fixed["content"] = window_ms, flags, number
    (packed,) = _FORMAT.pack(fixed, [name.encode()])
    store.write([Put(Family.ENTRIES, key_of(number), packed)])


def _joined(store: MemoryStore, *reserve: int) -> None:
    """Commit a cluster 0 of a, whose entry is 0, with copies whose entries are in reserve: 1 of b, 2 of c."""
    book = _book(store)
    book.records.note("a", _record((0,)))
    for number in reserve:
        name = "abc"[number]
        book.records.note(name, _record((number,)))
        book.join(0, "a", 0, member_of(name, book.records.record(name), number, active=False), None, _NOW)
        _entry(store, number, name)
    _commit(store, book)


def test_single_article_is_no_cluster_and_its_own_canonical() -> None:
    """A cluster is recorded with its first copy: the founder first, with what is known of it."""
    store = MemoryStore()
    book = _book(store)
    book.records.note("a", _record((0,), source="甲报"))
    assert (book.cluster(0), book.canonical(0, "a")) == (None, "a")
    book.join(0, "a", 0, member_of("b", _record(source="乙报"), NOT_INDEXED, active=False), None, _NOW)
    cluster = book.cluster(0)
    assert cluster is not None
    assert [(one.id, one.entry, one.active, one.source) for one in cluster.members] == [
        ("a", 0, True, "甲报"),
        ("b", NOT_INDEXED, False, "乙报"),
    ]
    assert book.published == {"a": cluster}
    _commit(store, book)
    (stored,) = [Cluster.unpack(value) for _, value in store.items(Family.CLUSTERS)]
    assert stored == cluster
    assert _book(store).canonical(0, "x") == "a"


def test_reserve_is_wanted_until_there_is_one() -> None:
    """The first copy's entry is kept in reserve, those of further copies are not."""
    store = MemoryStore()
    book = _book(store)
    for number, name in enumerate("ab"):
        _entry(store, number, name, window_ms=7)
    book.records.note("a", _record((0,)))
    assert book.wants_reserve(0, _LATER, _NOW)
    book.join(0, "a", 0, member_of("b", _record(), 1, active=False), None, _NOW)
    assert not book.wants_reserve(0, _LATER, _NOW)


@pytest.mark.parametrize(
    ("indexed", "reserve", "own", "wanted"),
    [
        (500, None, 600, True),
        (500, 500, 600, False),
        (500, 400, 600, False),
        (500, 399, 600, True),  # expires an eighth of the window before the one in the index
        (500, 700, 800, False),
        (500, 200, 250, False),  # remembered about as long as the copy itself
        (500, 149, 250, True),
    ],
)
def test_reserve_is_wanted_again_once_it_expires_much_earlier(
    indexed: int, reserve: int | None, own: int, *, wanted: bool
) -> None:
    """By hand, with an eighth of 100 ms: the times of the entries count, not those of texts that are not kept."""
    store, window = MemoryStore(), Moment(800, 0)
    book = _book(store)
    book.records.note("a", _record((0,)))
    _entry(store, 0, "a", indexed, flags=0)
    book.join(0, "a", 0, member_of("b", _record(), NOT_INDEXED, active=False), None, window)
    if reserve is not None:
        _entry(store, 2, "c", reserve)
        later = _record((2,))._replace(published_ms=800)
        book.join(0, "a", 0, member_of("c", later, 2, active=False), None, window)
    assert book.wants_reserve(0, own, window) is wanted


@pytest.mark.parametrize(("indexed", "reserve"), [(430, 399), (1_000, None)], ids=["expired", "gone"])
def test_what_no_article_can_match_any_more_is_no_reserve(indexed: int, reserve: int | None) -> None:
    """However near it is to the one in the index."""
    store, window = MemoryStore(), Moment(1_200, 400)
    book = _book(store)
    book.records.note("a", _record((0,)))
    _entry(store, 0, "a", indexed, flags=0)
    if reserve is not None:
        _entry(store, 1, "b", reserve)
    book.join(0, "a", 0, member_of("b", _record((1,)), 1, active=False), None, window)
    assert book.wants_reserve(0, 1_000, window)


def test_founder_stands_in_with_its_newest_text() -> None:
    """Whichever of its texts a copy matched: the newest is remembered longest."""
    book = _book(MemoryStore())
    book.records.note("a", _record((5, 3)))
    book.join(0, "a", 3, member_of("b", _record(), NOT_INDEXED, active=False), None, _NOW)
    cluster = book.cluster(0)
    assert cluster is not None
    assert [(one.entry, one.active) for one in cluster.members] == [(5, True), (NOT_INDEXED, False)]


def test_cluster_that_nobody_was_told_of_has_no_tombstone() -> None:
    """If the policy prefers its first copy, readers hear of it by that name only."""
    book = _book(MemoryStore(), canonical="longest")
    book.records.note("a", _record((0,)))
    longer = member_of("b", _record()._replace(characters=10), NOT_INDEXED, active=False)
    book.join(0, "a", 0, longer, None, _NOW)
    assert book.published == {"b": book.cluster(0)}
    assert book.successions == [(0, Succession("a", "b", SuccessionReason.POLICY))]
    book.join(0, "a", 0, member_of("c", _record()._replace(characters=11), NOT_INDEXED, active=False), None, _NOW)
    assert book.published == {"b": None, "c": book.cluster(0)}


def test_cluster_is_sealed_once() -> None:
    """As soon as enough of it is in the index: what is in reserve does not count, and stays there as it is."""
    store = MemoryStore()
    _joined(store, 1)
    _entry(store, 0, "a", flags=0)
    _entry(store, 3, "d", flags=0)
    book = _book(store, variants=2)
    book.seal(0)
    assert book.removed == []
    book.records.note("d", _record((3, 2)))
    book.join(0, "a", 0, member_of("d", book.records.record("d"), 3, active=True), None, _NOW)
    assert not book.reindexed
    book.seal(0)
    book.seal(0)
    cluster, record = book.cluster(0), book.records.record("d")
    assert cluster is not None
    assert record is not None
    assert [(one.id, one.entry, one.active) for one in cluster.members] == [
        ("a", 10, True),
        ("b", 1, False),
        ("d", 11, True),
    ]
    assert (book.removed, book.reindexed, record.entries) == ([0, 3], True, (11, 2))
    sealed = [book.entry(number) for number in (10, 11)]
    assert [one is not None and int(one["flags"][0]) for one in sealed] == [SEALED, SEALED]
    _commit(store, book)
    # What earlier links name as their match is found under its new number.
    new_numbers = {key[4:]: value for key, value in store.items(Family.MEMBERS)}
    assert new_numbers == {renumbered_key(0): key_of(10), renumbered_key(3): key_of(11)}


def test_what_comes_out_of_reserve_is_new_to_the_index() -> None:
    """Later articles of the batch have yet to be compared with it, and no link names its old number."""
    store = MemoryStore()
    _joined(store, 1)
    book = _book(store)
    assert book.leave("a", _record(()), SuccessionReason.WITHDRAWN, _NOW) == "b"
    assert book.reindexed
    fixed = book.entry(10)
    assert fixed is not None
    assert int(fixed["flags"][0]) & RESERVE == 0
    _commit(store, book)
    assert list(store.items(Family.MEMBERS)) == []


def test_leaving_canonical_article_is_succeeded_and_the_reserve_activated() -> None:
    """The copy's entry is indexed under a new number, which its record and the cluster then refer to."""
    store = MemoryStore()
    _joined(store, 1)
    book = _book(store)
    assert book.leave("a", _record((0,)), SuccessionReason.MOVED, _NOW) == "b"
    assert book.removed == [0, 1]
    assert book.reindexed
    cluster, record, new = book.cluster(0), book.records.record("b"), book.published
    assert cluster is not None
    assert record is not None
    assert [(one.id, one.entry, one.active) for one in cluster.members] == [("b", 10, True)]
    assert record.entries == (10,)
    assert new == {"b": cluster, "a": None}
    assert book.successions == [(0, Succession("a", "b", SuccessionReason.MOVED))]


def test_withdrawal_is_no_succession() -> None:
    """Readers learn of the new canonical article from the withdrawal itself."""
    store = MemoryStore()
    _joined(store, 1)
    book = _book(store)
    assert book.leave("a", _record((0,)), SuccessionReason.WITHDRAWN, _NOW) == "b"
    assert book.successions == []


def test_expired_entry_is_not_activated() -> None:
    """The first entry in reserve that is in the window is used; if there is none, the cluster does not change."""
    store = MemoryStore()
    _joined(store, 1, 2)
    _entry(store, 2, "c", window_ms=50)
    book = _book(store)
    assert book.leave("a", _record((0,)), SuccessionReason.WITHDRAWN, Moment(100, 50)) == "b"
    cluster = book.cluster(0)
    assert cluster is not None
    assert [(one.id, one.active) for one in cluster.members] == [("b", False), ("c", True)]
    other = _book(store)
    assert other.leave("a", _record((0,)), SuccessionReason.WITHDRAWN, Moment(100, 51)) == "b"
    assert other.removed == [0]


@pytest.mark.parametrize(
    ("newest", "indexed", "activated"),
    [(80, True, ""), (92, True, ""), (93, True, "e"), (80, False, "c"), (92, False, "c"), (93, False, "ce")],
)
def test_cluster_whose_canonical_article_is_not_kept_is_found_by_others(
    newest: int, activated: str, *, indexed: bool
) -> None:
    """By what is in the index, or else by the first in reserve; by the newest too if it outlives these by an eighth."""
    store, window = MemoryStore(), Moment(100, 0)
    book = _book(store)
    book.records.note("a", _record((0,)))
    book.records.note("b", _record())
    book.join(0, "a", 0, member_of("b", _record(), NOT_INDEXED, active=False), None, window)
    for name, number in [("c", 2), *[("d", 3)] * indexed, ("e", 4)]:
        book.records.note(name, _record((number,)))
        _entry(store, number, name, newest if name == "e" else 80, flags=0 if name == "d" else RESERVE)
        member = member_of(name, book.records.record(name), number, active=name == "d")
        book.join(0, "a", 0, member, None, window)
    assert book.leave("a", _record((0,)), SuccessionReason.WITHDRAWN, window) == "b"
    cluster = book.cluster(0)
    assert cluster is not None
    assert "".join(one.id for one in cluster.members if one.active) == "d" * indexed + activated
    assert book.removed == [0, *({"c": 2, "e": 4}[name] for name in activated)]


def test_last_member_ends_the_cluster() -> None:
    """When no member is left, the cluster is deleted, and readers are told."""
    store = MemoryStore()
    _joined(store, 1)
    book = _book(store)
    assert book.leave("b", _record((1,)), SuccessionReason.WITHDRAWN, _NOW) == "a"
    assert book.leave("a", _record((0,)), SuccessionReason.WITHDRAWN, _NOW) is None
    assert book.published == {"a": None}
    _commit(store, book)
    assert list(store.items(Family.CLUSTERS)) == []


def test_article_without_copies_leaves_no_word() -> None:
    """A single article was never published as a cluster, so nothing is published when it goes."""
    book = _book(MemoryStore())
    assert book.leave("a", _record((3, 2)), SuccessionReason.WITHDRAWN, _NOW) is None
    assert (book.removed, book.published, book.writes()) == ([3, 2], {}, [])


def test_canonical_article_is_known_as_long_as_copies_come() -> None:
    """With each copy, the cluster's id is remembered again for a full window."""
    store = MemoryStore()
    _joined(store, 1)
    book = _book(store)
    book.records.note("c", _record(decided_ms=500))
    book.join(0, "a", 0, member_of("c", book.records.record("c"), NOT_INDEXED, active=False), None, Moment(500, 400))
    _commit(store, book)
    records = {name: _book(store).records.record(name) for name in "abc"}
    assert {name: record and record.decided_ms for name, record in records.items()} == {"a": 500, "b": 100, "c": 500}


@pytest.mark.parametrize("gone", [_record((1,), decided_ms=39), _record((1,), cluster=9)])
def test_only_an_article_that_is_known_succeeds(gone: ArticleRecord) -> None:
    """Articles that expired or rejoined elsewhere are passed over; if no other is left, there is no successor."""
    store = MemoryStore()
    _joined(store, 1, 2)
    book = _book(store)
    book.records.note("b", gone)
    assert book.leave("a", _record((0,)), SuccessionReason.WITHDRAWN, Moment(100, 40)) == "c"
    assert book.leave("c", _record((2,)), SuccessionReason.WITHDRAWN, Moment(100, 40)) is None
    assert book.published == {"a": None, "c": None}


def test_cluster_was_first_seen_with_the_first_text() -> None:
    """The founder's newest text may be later."""
    book = _book(MemoryStore())
    book.records.note("a", _record((0,))._replace(first_ms=2, published_ms=60))
    book.records.note("b", _record()._replace(published_ms=70))
    book.join(0, "a", 0, member_of("b", book.records.record("b"), NOT_INDEXED, active=False), None, _NOW)
    cluster = book.cluster(0)
    assert cluster is not None
    assert (cluster.first_ms, cluster.last_ms) == (2, 70)
