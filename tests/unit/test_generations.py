"""Generations: the newest record wins, deletion applies to all of them, and expired ones are gone."""

from hypothesis import given
from hypothesis import strategies as st

from stream_dedup.index.records.generations import EXPIRING, expire, newest, put_records
from stream_dedup.index.records.ledger import Generation, Progress
from stream_dedup.index.records.records import key_of
from stream_dedup.index.stores.store import Family, MemoryStore, Put, Puts

_KEYS = [b"", b"a", b"ab", b"b", "新闻".encode()]
_WRITES = st.lists(
    st.tuples(st.booleans(), st.lists(st.tuples(st.sampled_from(_KEYS), st.none() | st.binary(max_size=3)))), max_size=8
)


def _progress(first: int, last: int, entries: int = 0) -> Progress:
    return Progress(generations=tuple(Generation(number, 0, entries * number) for number in range(first, last + 1)))


@given(writes=_WRITES)
def test_newest_record_of_each_key_is_read(writes: list[tuple[bool, list[tuple[bytes, bytes | None]]]]) -> None:
    """Over all live generations, a key has its last value, and none after its deletion."""
    store, model = MemoryStore(), dict[bytes, bytes | None]()
    last = 0
    for begins, records in writes:
        last += begins
        live = list(range(last + 1))
        for key, value in records:
            model[key] = value
        puts = Puts(Family.ARTICLES, [key for key, _ in records], [value for _, value in records])
        store.write(list(put_records(puts, live)))
        assert newest(store, Family.ARTICLES, _KEYS, live) == [model.get(key) for key in _KEYS]
    assert newest(store, Family.ARTICLES, [], [0]) == []
    assert newest(store, Family.URLS, _KEYS, [0]) == [None] * len(_KEYS)


def test_record_expires_with_the_generation_that_it_was_written_in() -> None:
    """What was written again later stays, what was not is gone, and nothing else is affected."""
    store = MemoryStore()
    for generation in range(4):
        for family in EXPIRING:
            puts = Puts(family, [str(generation).encode(), b"again"], [b"x", str(generation).encode()])
            store.write(list(put_records(puts, range(generation + 1))))
        store.write(
            [Put(Family.ENTRIES, key_of(entry), b"e") for entry in range(10 * generation, 10 * generation + 10)]
        )
    store.write([Put(Family.META, b"m", b"m"), Put(Family.COUNTS, b"c", b"c")])
    store.write(list(expire(_progress(0, 3, 10), _progress(2, 4, 10))))
    for family in EXPIRING:
        assert newest(store, family, [b"0", b"1", b"2", b"3", b"again"], [0, 1, 2, 3]) == [None, None, b"x", b"x", b"3"]
        assert len(list(store.items(family))) == 4
    assert [int.from_bytes(key, "big") for key, _ in store.items(Family.ENTRIES)] == [*range(20, 40)]
    assert [len(list(store.items(family))) for family in (Family.META, Family.COUNTS)] == [1, 1]


def test_nothing_expires_while_the_oldest_generation_lives() -> None:
    """No deletion is written unless a generation has expired."""
    assert list(expire(_progress(2, 3, 10), _progress(2, 4, 10))) == []


def test_families_of_what_expires_and_what_stays() -> None:
    """All families except entries, counts and small facts have keys that start with a generation."""
    assert set(Family) - set(EXPIRING) == {Family.META, Family.ENTRIES, Family.COUNTS}
