"""Promises of the records: what is packed comes back, whatever the ids are written in."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from stream_dedup.article import Origin, Relation
from stream_dedup.index.records import ArticleRecord, EntryFormat, EntryNames, Rows, key_of, keys_of

_IDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.sampled_from(
    ["新闻-001", "👨\u200d👩\u200d👧", "a" * 4000, "中" * 4000]
)
_TIMES = st.none() | st.integers(-2_208_988_800_000, 253_402_300_799_999)
_U64 = st.integers(0, 2**64 - 1)
_SKETCH, _NUMBERS = 16, 4


def _arrays(rows: Rows) -> list[NDArray[np.generic]]:
    return list(rows._asdict().values())


def _rows(seed: int, count: int) -> Rows:
    """Draw rows of which every field is filled to its bound now and then."""
    rng = np.random.default_rng(seed)
    return Rows(
        rng.integers(0, 2**64, count, dtype=np.uint64),
        rng.integers(0, 2**64, count, dtype=np.uint64),
        rng.integers(0, 2**32, (count, _SKETCH), dtype=np.uint32),
        rng.integers(0, _SKETCH + 1, count),
        rng.choice([0, 1, 300, 2**32 - 1], count),
        rng.integers(0, 2**32, (count, _NUMBERS), dtype=np.uint32),
        rng.integers(0, _NUMBERS + 1, count),
        rng.choice([0, 5, 10**6], count),
    )


@given(st.integers(0, 2**32), st.lists(st.tuples(st.integers(0, 4), _TIMES, _IDS, _IDS), min_size=1, max_size=5))
def test_entries_come_back_as_they_were(seed: int, chosen: list[tuple[int, int | None, str, str]]) -> None:
    """Rows and ids of any entries are the same after packing and unpacking."""
    rows, layout = _rows(seed, 5), EntryFormat(_SKETCH, _NUMBERS)
    places = np.array([place for place, *_ in chosen], np.int64)
    names = [EntryNames(article, canonical) for *_, article, canonical in chosen]
    packed = layout.pack(rows, places, 7, [moment for _, moment, *_ in chosen], names)
    assert [layout.names(entry) for entry in packed] == names
    for field, unpacked in zip(_arrays(rows), _arrays(layout.unpack(packed)), strict=True):
        assert unpacked.tolist() == field[places].tolist()


def test_no_entries_are_no_rows() -> None:
    """Packing and unpacking nothing gives nothing."""
    rows, layout = _rows(1, 2), EntryFormat(_SKETCH, _NUMBERS)
    assert layout.pack(rows, np.empty(0, np.int64), 0, [], []) == []
    assert layout.unpack([]).sketches.shape == (0, _SKETCH)


@given(st.lists(_U64, max_size=8).map(tuple), st.integers(-1, 2**62), _TIMES, st.sampled_from([None, *Relation]), _IDS)
def test_article_records_come_back_as_they_were(
    contents: tuple[int, ...], entry: int, published: int | None, relation: Relation | None, canonical: str
) -> None:
    """Every field of an article's record is the same after packing and unpacking."""
    record = ArticleRecord(contents, entry, published, relation, canonical, None)
    assert ArticleRecord.unpack(record.pack()) == record


@given(st.from_regex(r"\A[a-zA-Z0-9._-]{1,249}\Z"), st.integers(0, 2**31 - 1), st.integers(0, 2**62))
def test_origins_come_back_as_they_were(topic: str, partition: int, offset: int) -> None:
    """Topic, partition and offset of an article's message are the same after packing and unpacking."""
    record = ArticleRecord((1,), 2, 3, None, "a", Origin(topic, partition, offset))
    assert ArticleRecord.unpack(record.pack()).origin == Origin(topic, partition, offset)


@given(st.lists(_U64))
def test_keys_are_in_the_order_of_their_numbers(numbers: list[int]) -> None:
    """Keys compare as their numbers do, one by one or many at a time."""
    keys = keys_of(np.array(numbers, np.uint64))
    assert keys == [key_of(number) for number in numbers]
    assert sorted(keys) == [key_of(number) for number in sorted(numbers)]


def test_rows_follow_one_another() -> None:
    """Joined rows are the first ones, then the others."""
    one, other = _rows(1, 3), _rows(2, 2)
    for first, second, both in zip(_arrays(one), _arrays(other), _arrays(one.followed_by(other)), strict=True):
        assert both.tolist() == [*first.tolist(), *second.tolist()]
