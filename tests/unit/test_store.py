"""All kinds of stores, and those that follow another, hold what a dictionary with the same writes would.

Knows reads and writes of pairs; what only RocksDB can do is tested in test_rocks.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.index.stores.store import Drop, Family, FileStore, MemoryStore, Overlay, Put, Puts, Store, Write
from tests.unit.stores import rocks_in

_SOME = [Family.META, Family.URLS]
_BYTES = st.binary(max_size=3)
_WRITES = st.lists(
    st.builds(Put, st.sampled_from(_SOME), _BYTES, st.none() | st.binary(max_size=4))
    | st.builds(
        lambda family, pairs: Puts(family, [key for key, _ in pairs], [value for _, value in pairs]),
        st.sampled_from(_SOME),
        st.lists(st.tuples(_BYTES, st.none() | st.binary(max_size=4)), max_size=4),
    )
    | st.builds(Drop, st.sampled_from(_SOME), _BYTES, _BYTES),
    max_size=20,
)
_KINDS = ["memory", "rocks", "overlay of memory", "overlay of rocks"]


def _base(kind: str, directory: Path) -> FileStore:
    return MemoryStore() if kind.endswith("memory") else rocks_in(directory)


def _on(kind: str, base: Store) -> Store:
    return Overlay(base) if kind.startswith("overlay") else base


@pytest.fixture(params=_KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Return each kind of store."""
    base = _base(request.param, tmp_path / "state")
    yield _on(request.param, base)
    base.close()


def test_values_are_found_by_their_keys(store: Store) -> None:
    """Values are in the order of the keys, None for missing ones, even if a key is repeated."""
    store.write([Put(Family.URLS, b"b", b"2"), Put(Family.URLS, b"a", b"1"), Put(Family.URLS, b"e", b"")])
    assert store.get_many(Family.URLS, [b"b", b"x", b"a", b"b", b"e"]) == [b"2", None, b"1", b"2", b""]
    assert store.get_many(Family.URLS, []) == []


def test_items_are_those_of_a_prefix_in_ascending_order(store: Store) -> None:
    """Pairs are in the byte order of their keys, and only those that start with the prefix."""
    keys = [b"b\xff\xff", b"a", b"b", b"c", b"b\x00", b"ba", b"\xff\xff"]
    store.write([Put(Family.COUNTS, key, key[::-1]) for key in keys])
    assert list(store.items(Family.COUNTS)) == [(key, key[::-1]) for key in sorted(keys)]
    assert [key for key, _ in store.items(Family.COUNTS, b"b")] == [b"b", b"b\x00", b"ba", b"b\xff\xff"]
    assert list(store.items(Family.COUNTS, b"d")) == []
    assert [key for key, _ in store.items(Family.COUNTS, b"\xff")] == [b"\xff\xff"]


@pytest.mark.parametrize("prefix", [b"", b"a", b"b", b"b\xff", b"c", b"d", b"\xff", b"\xff\xff\xff"])
def test_items_can_be_had_from_the_last_one_on(store: Store, prefix: bytes) -> None:
    """The same pairs come in reverse, even if a key directly follows the prefix."""
    keys = [b"b\xff\xff", b"a", b"b", b"c", b"b\x00", b"ba", b"\xff\xff"]
    store.write([Put(Family.MEMBERS, key, key[::-1]) for key in keys])
    there = sorted(key for key in keys if key.startswith(prefix))
    found = list(store.items(Family.MEMBERS, prefix, descending=True))
    assert found == [(key, key[::-1]) for key in reversed(there)]


def test_families_are_apart(store: Store) -> None:
    """The same key has a value of its own in each family."""
    store.write([Put(family, b"key", family.encode()) for family in Family])
    assert [store.get_many(family, [b"key"]) for family in Family] == [[family.encode()] for family in Family]


def test_deleted_keys_are_gone(store: Store) -> None:
    """A value of None deletes the key; deleting a missing key is no error."""
    store.write([Put(Family.META, b"a", b"1"), Put(Family.META, b"b", b"2")])
    store.write([Put(Family.META, b"a", None), Put(Family.META, b"x", None)])
    assert store.get_many(Family.META, [b"a", b"b"]) == [None, b"2"]
    assert list(store.items(Family.META)) == [(b"b", b"2")]


def test_last_write_of_a_key_counts(store: Store) -> None:
    """Even within one write, later puts replace earlier ones."""
    store.write([Put(Family.META, b"a", b"1"), Put(Family.META, b"a", None), Put(Family.META, b"a", b"3")])
    store.write([])
    assert store.get_many(Family.META, [b"a"]) == [b"3"]


def test_drop_takes_its_range_and_nothing_else(store: Store) -> None:
    """The keys from begin up to but excluding end are gone for all kinds of reads; other families keep theirs."""
    keys = [b"a", b"b", b"b\x00", b"bz", b"c", b"c\x00"]
    store.write([Put(family, key, key) for family in (Family.URLS, Family.META) for key in keys])
    store.write([Drop(Family.URLS, b"b", b"c")])
    assert store.get_many(Family.URLS, keys) == [b"a", None, None, None, b"c", b"c\x00"]
    assert list(store.items(Family.URLS)) == [(key, key) for key in (b"a", b"c", b"c\x00")]
    assert list(store.items(Family.URLS, b"b")) == []
    assert store.get_many(Family.META, keys) == keys


def test_writes_count_in_their_order(store: Store) -> None:
    """Within one write, a drop affects what came before it, and not what comes after."""
    store.write([Put(Family.META, b"a", b"1"), Drop(Family.META, b"a", b"c"), Put(Family.META, b"b", b"2")])
    assert list(store.items(Family.META)) == [(b"b", b"2")]


@pytest.mark.parametrize(("begin", "end"), [(b"a", b"a"), (b"c", b"a"), (b"a", b"")])
def test_drop_of_an_empty_range_does_nothing(begin: bytes, end: bytes, store: Store) -> None:
    """If the end is not after the beginning, nothing is deleted, and the store remains usable."""
    store.write([Put(Family.META, key, key) for key in (b"a", b"b", b"c")])
    store.write([Drop(Family.META, begin, end), Put(Family.META, b"d", b"d")])
    assert [key for key, _ in store.items(Family.META)] == [b"a", b"b", b"c", b"d"]


def test_items_do_not_see_later_writes(store: Store) -> None:
    """A walk sees what existed when it began, so it can be used to delete what it finds."""
    store.write([Put(Family.META, bytes([number]), b"old") for number in range(9)])
    walk = store.items(Family.META)
    first = next(walk)
    store.write([Drop(Family.META, b"\x00", b"\x05"), Put(Family.META, b"\x07", b"new")])
    assert [first, *walk] == [(bytes([number]), b"old") for number in range(9)]


@pytest.mark.parametrize("kind", _KINDS)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(before=_WRITES, after=st.lists(st.tuples(st.booleans(), _WRITES), max_size=4), asked=st.lists(_BYTES))
def test_stores_hold_what_a_dictionary_would(
    kind: str,
    tmp_path_factory: pytest.TempPathFactory,
    before: list[Write],
    after: list[tuple[bool, list[Write]]],
    asked: list[bytes],
) -> None:
    """After any writes and loads, all reads match a dictionary with the same writes."""
    base = _base(kind, tmp_path_factory.mktemp("state"))
    base.write(before)
    store = _on(kind, base)
    for bulk, writes in after:
        (base.load if bulk and store is base else store.write)(writes)
        store.get_many(Family.META, [b"x"])
    for family in _SOME:
        pairs = _dictionary(family, [*before, *(write for _, writes in after for write in writes)])
        keys = [*pairs, *asked]
        assert store.get_many(family, keys) == [pairs.get(key) for key in keys]
        for prefix in (b"", *asked[:2]):
            assert list(store.items(family, prefix)) == sorted(p for p in pairs.items() if p[0].startswith(prefix))
    base.close()


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(steps=st.lists(st.tuples(st.booleans(), _WRITES), min_size=1, max_size=4), asked=st.lists(_BYTES))
def test_a_follower_holds_what_a_dictionary_would(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[bool, list[Write]]], asked: list[bytes]
) -> None:
    """After any writes and loads, its reads match the writer's, however it keeps a family."""
    directory, notes = tmp_path_factory.mktemp("state"), tmp_path_factory.mktemp("notes")
    base = rocks_in(directory)
    follower = RocksStore(directory, cache_bytes=1 << 20, write_buffer_bytes=1 << 20, follow=notes)
    written: list[Write] = []
    for bulk, writes in steps:
        everywhere = [replace(write, family=family) for write in writes for family in Family]
        (base.load if bulk else base.write)(everywhere)
        written += everywhere
        follower.catch_up()
        for family in Family:
            pairs = _dictionary(family, written)
            keys = [*pairs, *asked]
            assert follower.get_many(family, keys) == [pairs.get(key) for key in keys]
            for prefix in (b"", *asked[:2]):
                assert list(follower.items(family, prefix)) == sorted(
                    pair for pair in pairs.items() if pair[0].startswith(prefix)
                )
    follower.close()
    base.close()


def test_a_follower_sees_what_is_loaded_over_what_it_read(tmp_path: Path) -> None:
    """Even a family that the writer only loads into is complete, since the follower gets its keys from the log."""
    base = rocks_in(tmp_path / "state")
    follower = RocksStore(tmp_path / "state", cache_bytes=1 << 20, write_buffer_bytes=1 << 20, follow=tmp_path)
    base.write([Put(family, key, b"old") for family in Family for key in (b"a", b"b")])
    follower.catch_up()
    base.load([Put(family, key, b"new") for family in Family for key in (b"a", b"c")])
    follower.catch_up()
    for family in Family:
        assert follower.get_many(family, [b"a", b"b", b"c"]) == [b"new", b"old", b"new"]
    follower.close()
    base.close()


def _dictionary(family: Family, writes: Sequence[Write]) -> dict[bytes, bytes]:
    pairs: dict[bytes, bytes | None] = {}
    for write in writes:
        if write.family is not family:
            continue
        if isinstance(write, Put):
            pairs[write.key] = write.value
        elif isinstance(write, Puts):
            pairs |= dict(zip(write.keys, write.values, strict=True))
        else:
            pairs = {key: value for key, value in pairs.items() if key < write.begin or key >= write.end}
    return {key: value for key, value in pairs.items() if value is not None}


@pytest.mark.parametrize(("kind", "bulk"), [*((kind, False) for kind in _KINDS), ("memory", True), ("rocks", True)])
def test_puts_are_as_many_single_ones(kind: str, bulk: bool, tmp_path: Path) -> None:  # noqa: FBT001  # a case of the test
    """Later pairs of a `Puts` replace or delete earlier ones, and it takes its turn among the other writes."""
    base = _base(kind, tmp_path / "state")
    store = _on(kind, base)
    store.write([Put(Family.META, b"c", b"old"), Put(Family.META, b"d", b"old")])
    keys, values = [b"c", b"a", b"b", b"a", b"d"], [b"1", b"2", b"3", b"4", None]
    writes: list[Write] = [Put(Family.META, b"b", b"0"), Puts(Family.META, keys, values), Put(Family.META, b"c", None)]
    (base.load if bulk else store.write)(writes)
    assert list(store.items(Family.META)) == [(b"a", b"4"), (b"b", b"3")]
    base.close()


def test_overlay_writes_nothing_itself() -> None:
    """The base does not change until the staged writes are applied in order; then it equals the overlay."""
    base = MemoryStore()
    base.write([Put(Family.META, b"a", b"1"), Put(Family.META, b"b", b"1")])
    overlay = Overlay(base)
    writes: list[Put | Drop] = [
        Put(Family.META, b"a", b"2"),
        Drop(Family.META, b"a", b"c"),
        Put(Family.META, b"b", b"3"),
    ]
    overlay.write(writes[:1])
    at_first = overlay.staged
    overlay.write(writes[1:])
    assert at_first == writes[:1]
    shown = list(overlay.items(Family.META))
    assert list(base.items(Family.META)) == [(b"a", b"1"), (b"b", b"1")]
    assert overlay.staged == writes
    base.write(overlay.staged)
    assert list(base.items(Family.META)) == shown == [(b"b", b"3")]


def test_walk_through_an_overlay_goes_on_as_it_began() -> None:
    """What is staged meanwhile hides nothing of the base from it, even once other reads show it."""
    base = MemoryStore()
    old = [(bytes([number]), b"old") for number in range(9)]
    base.write([Put(Family.META, key, value) for key, value in old])
    overlay = Overlay(base)
    walk = overlay.items(Family.META)
    first = next(walk)
    overlay.write([Put(Family.META, b"\x07", b"new"), Drop(Family.META, b"\x00", b"\x05")])
    assert overlay.get_many(Family.META, [b"\x01", b"\x07"]) == [None, b"new"]
    assert [first, *walk] == old


def test_overlay_asks_its_base_only_for_what_is_not_staged() -> None:
    """Keys written or dropped are not looked up in the base, and families without writes go straight to it."""
    asked = []

    class Base(MemoryStore):
        def get_many(self, family: Family, keys: Sequence[bytes]) -> list[bytes | None]:
            asked.append(keys)
            return super().get_many(family, keys)

    overlay = Overlay(Base())
    overlay.write([Put(Family.META, b"a", b"1"), Drop(Family.META, b"c", b"e")])
    overlay.get_many(Family.META, [b"a", b"b", b"c", b"d", b"e"])
    assert asked == [[b"b", b"e"]]
    keys = [b"a", b"c"]
    overlay.get_many(Family.URLS, keys)
    assert asked[1] is keys
