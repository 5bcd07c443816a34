"""Promises of the records: what is packed comes back, whatever the ids are written in."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from stream_dedup.article import Origin, Relation
from stream_dedup.fingerprint.sketch import LandmarkRule
from stream_dedup.hashing import U64
from stream_dedup.index.records import (
    ArticleRecord,
    EntryFormat,
    Rows,
    generation_keys,
    generation_prefix,
    key_of,
    keys_of,
    rows_of_entries,
)

_IDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.sampled_from(
    ["新闻-001", "👨\u200d👩\u200d👧", "a" * 4000, "中" * 4000]
)
_TIMES = st.none() | st.integers(-2_208_988_800_000, 253_402_300_799_999)
_U64 = st.integers(0, 2**64 - 1)
_SKETCH, _NUMBERS, _PLACES, _LANDMARKS = 16, 4, 5, 8
_RULE = LandmarkRule(3, 20, _LANDMARKS)


def _arrays(rows: Rows) -> list[NDArray[np.generic]]:
    return list(rows._asdict().values())


def _rows(seed: int, count: int) -> Rows:
    """Draw rows of which every field is filled to its bound now and then."""
    rng = np.random.default_rng(seed)
    return Rows(
        rng.integers(0, 2**64, count, dtype=np.uint64),
        rng.integers(0, 2**64, count, dtype=np.uint64),
        rng.choice([-(2**62), 0, 1_760_000_000_000, 2**62], count),
        rng.integers(0, 2**24, (count, _SKETCH), dtype=np.uint32),
        rng.integers(0, _SKETCH + 1, count),
        rng.choice([0, 1, 70, 300, 2**32 - 1], count),
        rng.integers(0, 2**32, (count, _NUMBERS), dtype=np.uint32),
        rng.integers(0, _NUMBERS + 1, count),
        rng.choice([0, 5, 10**6], count),
        rng.integers(0, 2**32, (count, _PLACES), dtype=np.uint32),
        rng.integers(0, _PLACES + 1, count),
        rng.choice([0, 5, 10**6], count),
        rng.integers(0, 32, count, dtype=np.uint8),
        rng.integers(0, 2**64, count, dtype=np.uint64),
    )


def _landmarks(rows: Rows) -> U64:
    """Draw landmarks whose upper bits are the first values of the sketches; 0 where a text has fewer."""
    lower = np.random.default_rng(int(rows.contents[0]) % 97).integers(1, 2**16, (len(rows.sizes), _LANDMARKS))
    whole = (rows.sketches[:, :_LANDMARKS].astype(np.uint64) << np.uint64(16)) | lower.astype(np.uint64)
    counts = [min(size, max(3, min(8, size // 20))) for size in rows.sizes.tolist()]
    return np.where(np.arange(_LANDMARKS) < np.array(counts)[:, np.newaxis], whole, np.uint64(0))


@given(st.integers(0, 2**32), st.lists(st.tuples(st.integers(0, 4), _U64, _IDS), min_size=1, max_size=5))
def test_entries_come_back_as_they_were(seed: int, chosen: list[tuple[int, int, str]]) -> None:
    """Rows, clusters, landmarks and ids of any entries are the same after packing and unpacking."""
    rows, layout = _rows(seed, 5), EntryFormat(_SKETCH, _NUMBERS, _PLACES, _RULE)
    places = np.array([place for place, *_ in chosen], np.int64)
    landmarks = _landmarks(rows)[places]
    entries = layout.entries(rows, places, landmarks, 7)
    entries["cluster"] = [cluster for _, cluster, _ in chosen]
    packed = layout.pack(entries, [name.encode() for *_, name in chosen])
    assert [layout.name(entry).decode() for entry in packed] == [name for *_, name in chosen]
    unpacked = layout.fixed(packed)
    assert unpacked["cluster"].tolist() == [cluster for _, cluster, _ in chosen]
    assert set(unpacked["epoch"].tolist()) == {7}
    assert layout.landmark_keys(unpacked).tolist() == landmarks.tolist()
    for field, read in zip(_arrays(rows), _arrays(rows_of_entries(unpacked)), strict=True):
        assert read.tolist() == field[places].tolist()


def test_no_entries_are_no_rows() -> None:
    """Packing and unpacking nothing gives nothing."""
    rows, layout = _rows(1, 2), EntryFormat(_SKETCH, _NUMBERS, _PLACES, _RULE)
    none = layout.entries(rows, np.empty(0, np.int64), np.empty((0, _LANDMARKS), np.uint64), 0)
    assert layout.pack(none, []) == []
    assert rows_of_entries(layout.fixed([])).sketches.shape == (0, _SKETCH)


_HASHES = st.lists(_U64, max_size=8).map(tuple)
_ORIGINS = st.none() | st.builds(
    Origin, st.from_regex(r"\A[a-zA-Z0-9._-]{1,249}\Z"), st.integers(0, 2**31 - 1), st.integers(0, 2**62), _TIMES
)


@given(
    st.builds(
        ArticleRecord,
        contents=_HASHES,
        entries=_HASHES,
        decided_ms=st.integers(-(2**62), 2**62),
        published_ms=_TIMES,
        characters=st.integers(0, 2**32 - 1),
        relation=st.sampled_from([None, *Relation]),
        cluster=st.integers(0, 2**62),
        url=_U64,
        source=_IDS,
        origin=_ORIGINS,
    )
)
def test_article_records_come_back_as_they_were(record: ArticleRecord) -> None:
    """Every field of an article's record is the same after packing and unpacking."""
    assert ArticleRecord.unpack(record.pack()) == record


@given(_TIMES, _ORIGINS)
def test_article_is_seen_when_its_message_came(published: int | None, origin: Origin | None) -> None:
    """An article was seen at its message's time, else at that of its publication, else nobody knows."""
    record = ArticleRecord((1,), (), 5, None, published, 9, None, 1, 0, "", origin)
    message = origin.timestamp_ms if origin else None
    assert record.seen_ms == (published if message is None else message)


@given(st.lists(_U64))
def test_keys_are_in_the_order_of_their_numbers(numbers: list[int]) -> None:
    """Keys compare as their numbers do, one by one or many at a time."""
    keys = keys_of(np.array(numbers, np.uint64))
    assert keys == [key_of(number) for number in numbers]
    assert sorted(keys) == [key_of(number) for number in sorted(numbers)]


@given(st.lists(st.tuples(st.integers(0, 2**32 - 1), _U64), max_size=8))
def test_keys_of_a_generation_stand_together(pairs: list[tuple[int, int]]) -> None:
    """Keys sort by generation, then by number; those of one begin with its prefix."""
    keys = [generation_keys(np.array([number], np.uint64), generation)[0] for generation, number in pairs]
    assert [pair for _, pair in sorted(zip(keys, pairs, strict=True))] == sorted(pairs)
    for key, (generation, number) in zip(keys, pairs, strict=True):
        assert key == generation_prefix(generation) + key_of(number)


def test_rows_follow_one_another() -> None:
    """Joined rows are the first ones, then the others."""
    one, other = _rows(1, 3), _rows(2, 2)
    for first, second, both in zip(_arrays(one), _arrays(other), _arrays(one.followed_by(other)), strict=True):
        assert both.tolist() == [*first.tolist(), *second.tolist()]
