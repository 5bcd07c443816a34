"""Records survive packing and unpacking, whatever their ids contain."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from stream_dedup.arrays import I64, U32, U64
from stream_dedup.article import Article, Origin, Relation
from stream_dedup.fingerprint.sketch import PAD, LandmarkRule
from stream_dedup.index.entries.entries import EntryFormat, Rows, rows_of_entries
from stream_dedup.index.records.new_records import NewRecord, packed_records
from stream_dedup.index.records.records import (
    NOT_INDEXED,
    UNKNOWN_TIME,
    ArticleRecord,
    Sighting,
    generation_prefix,
    key_of,
    keys_of,
    seen_ms,
)
from stream_dedup.index.stores.store import StoreDamagedError

_IDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.sampled_from(
    ["新闻-001", "👨\u200d👩\u200d👧", "a" * 4000, "中" * 4000]
)
_TIMES = st.none() | st.integers(-2_208_988_800_000, 253_402_300_799_999)
_U64 = st.integers(0, 2**64 - 1)
_SKETCH, _NUMBERS, _PLACES, _LANDMARKS = 16, 4, 5, 8
_FORMAT = EntryFormat(_SKETCH, _NUMBERS, _PLACES, LandmarkRule(3, 20, _LANDMARKS))


def _arrays(rows: Rows) -> list[NDArray[np.generic]]:
    return list(rows._asdict().values())


def _ascending(rng: np.random.Generator, lengths: I64, width: int, bits: int) -> U32:
    """Draw sketches of these lengths, with values of this many bits, padded."""
    values = np.sort(rng.integers(0, 2**bits, (len(lengths), width), dtype=np.uint32), axis=1)
    values[np.arange(width) >= lengths[:, np.newaxis]] = PAD
    return values


def _rows(seed: int, count: int) -> Rows:
    """Draw rows whose fields are occasionally filled to their limits."""
    rng = np.random.default_rng(seed)
    lengths = [rng.integers(0, most + 1, count) for most in (_SKETCH, _NUMBERS, _PLACES)]
    return Rows(
        rng.integers(0, 2**64, count, dtype=np.uint64),
        rng.integers(0, 2**64, count, dtype=np.uint64),
        rng.choice([UNKNOWN_TIME, -1, 0, 1_760_000_000_000, 2**62], count),
        _ascending(rng, lengths[0], _SKETCH, 24),
        lengths[0],
        np.where(lengths[0] < _SKETCH, lengths[0], rng.choice([_SKETCH, 70, 300, 2**24], count)),
        _ascending(rng, lengths[1], _NUMBERS, 32),
        lengths[1],
        rng.choice([0, 5, 10**6], count),
        _ascending(rng, lengths[2], _PLACES, 32),
        lengths[2],
        rng.choice([0, 5, 10**6], count),
        rng.integers(0, 64, count, dtype=np.uint8),
        rng.choice(np.array([0, 1, 2**64 - 1], np.uint64), count),
    )


def _landmarks(rows: Rows) -> U64:
    """Draw landmarks whose upper bits are the first values of the sketches, or 0 if a text has fewer."""
    lower = np.random.default_rng(int(rows.contents[0]) % 97).integers(1, 2**16, (len(rows.sizes), _LANDMARKS))
    whole = (rows.sketches[:, :_LANDMARKS].astype(np.uint64) << np.uint64(16)) | lower.astype(np.uint64)
    counts = [min(size, max(3, min(8, size // 20))) for size in rows.sizes.tolist()]
    return np.where(np.arange(_LANDMARKS) < np.array(counts)[:, np.newaxis], whole, np.uint64(0))


@given(st.integers(0, 2**32), st.lists(st.tuples(st.integers(0, 4), _U64, _IDS), min_size=1, max_size=5))
def test_entries_come_back_as_they_were(seed: int, chosen: list[tuple[int, int, str]]) -> None:
    """Rows, clusters, landmarks and names of any entries survive packing and unpacking."""
    rows = _rows(seed, 5)
    places = np.array([place for place, *_ in chosen], np.int64)
    landmarks = _landmarks(rows)[places]
    entries = _FORMAT.entries(rows, places, landmarks, 7)
    entries["cluster"] = [cluster for _, cluster, _ in chosen]
    unpacked, names = _FORMAT.unpack(_FORMAT.pack(entries, [name.encode() for *_, name in chosen]))
    assert [name.decode() for name in names] == [name for *_, name in chosen]
    assert unpacked["cluster"].tolist() == [cluster for _, cluster, _ in chosen]
    assert set(unpacked["epoch"].tolist()) == {7}
    assert _FORMAT.landmark_keys(unpacked).tolist() == landmarks.tolist()
    for field, read in zip(_arrays(rows), _arrays(rows_of_entries(unpacked)), strict=True):
        assert read.tolist() == field[places].tolist()


def test_entry_by_hand() -> None:
    """An entry of two 5-grams, one number and no place consists of the bytes its format prescribes, then its name."""
    fixed = np.zeros(1, _FORMAT.layout)
    fixed["flags"], fixed["fingerprint"], fixed["content"] = 3, 0x0807060504030201, 0x1817161514131211
    fixed["window_ms"], fixed["cluster"], fixed["epoch"] = -2, 300, 1
    fixed["number_size"], fixed["number_length"], fixed["numbers"] = 1, 1, [[0x80000001, PAD, PAD, PAD]]
    fixed["size"], fixed["length"] = 2, 2
    fixed["sketch"][0, :2], fixed["landmarks"][0, :2] = [0x000005, 0x400006], [0xABCD, 0x1234]
    head = "0301020304050607081112131415161718"
    # -2 is 3, 300 is ac 02; no scope; epoch; size and length of numbers, places and 5-grams; a name of 2 bytes.
    figures = "03ac02000101010000020202"
    # One number: 31 low bits, then its upper bit as a zero. Two 5-grams: 22 low bits each, then no zero and one zero.
    bits = [(1, 31), (0b10, 2), (0b101, 22), (0b1, 22), (0b1, 1), (0b10, 2), (0xABCD, 16), (0x1234, 16)]
    row, at = 0, 0
    for value, width in bits:
        row, at = row | value << at, at + width
    by_hand = bytes.fromhex(head + figures) + row.to_bytes(-(-at // 8), "little") + b"id"
    assert _FORMAT.pack(fixed, [b"id"]) == [by_hand]


@pytest.mark.parametrize("name", [b"", b"a", b"n" * 1000, b"n" * 65_535])
def test_names_of_any_length_come_back(name: bytes) -> None:
    """Short and long names can be stored together."""
    entries = _FORMAT.entries(_rows(3, 3), np.arange(3), np.zeros((3, _LANDMARKS), np.uint64), 0)
    assert _FORMAT.unpack(_FORMAT.pack(entries, [b"x", name, b"y"]))[1] == [b"x", name, b"y"]


@given(st.integers(0, 2**32), st.data())
def test_cut_entry_is_heard(seed: int, data: st.DataObject) -> None:
    """An entry with bytes missing or added at its end is an error, even if it follows a sound one."""
    good, bad = _FORMAT.pack(
        _FORMAT.entries(_rows(seed, 2), np.arange(2), _landmarks(_rows(seed, 2)), 0), [b"good", b"name of the other"]
    )
    cut = bad[: data.draw(st.integers(0, len(bad) - 1))]
    for damaged in (cut, bad + b"\0"):
        with pytest.raises(StoreDamagedError, match=f"of {len(damaged)} bytes"):
            _FORMAT.unpack([good, damaged])


@given(st.lists(st.binary(max_size=200), max_size=4))
def test_any_bytes_are_an_entry_or_an_error(values: list[bytes]) -> None:
    """Any bytes give either entries or an error."""
    try:
        entries, names = _FORMAT.unpack(values)
    except StoreDamagedError:
        return
    assert len(entries) == len(names) == len(values)


def test_entry_of_more_values_than_a_sketch_has_is_heard_whatever_its_name_is_stated_to_take() -> None:
    """17 values of 16, and a name of 2^64 - 1 bytes, with which the sum of all lengths is that of the entry."""
    entry = bytes(1 + 8 + 8 + 8) + bytes([20, _SKETCH + 1]) + b"\xff" * 9 + b"\x01"
    with pytest.raises(StoreDamagedError):
        _FORMAT.unpack([entry])


@pytest.mark.parametrize(("sketch", "numbers", "places"), [(1, 0, 0), (0, 1, 0), (0, 0, 1)])
def test_entry_with_larger_sketches_is_heard(sketch: int, numbers: int, places: int) -> None:
    """What was packed with room for one value more than there is does not fit, although nothing is missing."""
    rooms = (_SKETCH + sketch, _NUMBERS + numbers, _PLACES + places)
    larger = EntryFormat(rooms[0], rooms[1], rooms[2], LandmarkRule(3, 20, _LANDMARKS))
    fixed = np.zeros(1, larger.layout)
    for field, size, length in zip(("sketch", "numbers", "places"), ("", "number_", "place_"), rooms, strict=True):
        fixed[field], fixed[f"{size}size"], fixed[f"{size}length"] = np.arange(length), length, length
    packed = larger.pack(fixed, [b"id"])
    assert larger.unpack(packed)[1] == [b"id"]
    with pytest.raises(StoreDamagedError):
        _FORMAT.unpack(packed)


def test_entry_has_no_more_landmarks_than_there_is_room_for_whatever_its_size() -> None:
    """2^64 - 1 n-grams take a byte more to write than 2^62, and as many landmarks."""
    fixed = np.zeros(2, _FORMAT.layout)
    fixed["size"], fixed["length"], fixed["sketch"] = [2**62, 2**64 - 1], _SKETCH, np.arange(_SKETCH)
    one, other = map(len, _FORMAT.pack(fixed, [b"id", b"id"]))
    assert other - one == 1


def test_no_entries_are_no_rows() -> None:
    """Packing and unpacking nothing gives nothing."""
    none = _FORMAT.entries(_rows(1, 2), np.empty(0, np.int64), np.empty((0, _LANDMARKS), np.uint64), 0)
    assert _FORMAT.pack(none, []) == []
    assert _FORMAT.landmark_keys(none).shape == (0, _LANDMARKS)
    unpacked, names = _FORMAT.unpack([])
    assert rows_of_entries(unpacked).sketches.shape == (0, _SKETCH)
    assert names == []


_HASHES = st.lists(_U64, max_size=8).map(tuple)
_ORIGINS = st.none() | st.builds(
    Origin, st.from_regex(r"\A[a-zA-Z0-9._-]{1,249}\Z"), st.integers(0, 2**31 - 1), st.integers(0, 2**62), _TIMES
)


_RECORDS = st.builds(
    ArticleRecord,
    contents=_HASHES,
    entries=_HASHES,
    decided_ms=st.integers(-(2**62), 2**62),
    first_ms=_TIMES,
    published_ms=_TIMES,
    characters=st.integers(0, 2**32 - 1),
    relation=st.sampled_from([None, *Relation]),
    cluster=st.integers(0, 2**62),
    url=_U64,
    source=_IDS,
    origin=_ORIGINS,
)


@given(_RECORDS)
def test_article_records_come_back_as_they_were(record: ArticleRecord) -> None:
    """Every field of an article's record survives packing and unpacking."""
    assert ArticleRecord.unpack(record.pack()) == record


@given(_RECORDS)
def test_sightings_are_those_of_the_records(record: ArticleRecord) -> None:
    """Read on their own, they are what the whole record says."""
    times = [time for time in (record.published_ms, record.first_ms, record.decided_ms) if time is not None]
    assert Sighting.unpack(record.pack()) == (record.decided_ms, times[0], record.cluster, record.source)


_NEW = st.builds(
    NewRecord,
    article=st.builds(
        Article,
        id=st.just("a"),
        body=st.text("新闻", min_size=1),
        source=_IDS,
        published_ms=_TIMES,
        origin=_ORIGINS,
    ),
    content=_U64,
    url=_U64,
    decided_ms=st.integers(-(2**62), 2**62),
    cluster=st.integers(0, 2**62),
    entry=st.just(NOT_INDEXED) | st.integers(0, 2**62),
    relation=st.sampled_from([None, *Relation]),
)


@given(st.lists(_NEW))
def test_new_records_are_records_like_all_others(records: list[NewRecord]) -> None:
    """However many are packed together, each unpacks to the record of an article with one text."""
    expected = [
        ArticleRecord(
            (new.content,),
            (new.entry,) if new.entry >= 0 else (),
            new.decided_ms,
            seen_ms(new.article.origin, new.article.published_ms),
            new.article.published_ms,
            len(new.article.body),
            new.relation,
            new.cluster,
            new.url,
            new.article.source,
            new.article.origin,
        )
        for new in records
    ]
    assert [ArticleRecord.unpack(packed) for packed in packed_records(records)] == expected
    assert [new.whole() for new in records] == expected


@given(st.data())
def test_cut_article_record_is_heard(data: st.DataObject) -> None:
    """A record with bytes missing or added at its end is an error."""
    origin = Origin("文章.in", 3, 5, 7)
    whole = ArticleRecord((1, 2), (3,), 5, 6, 7, 9, Relation.NEAR, 1, 0, "一家报社", origin).pack()
    for damaged in (whole[: data.draw(st.integers(0, len(whole) - 1))], whole + b"\0"):
        with pytest.raises(StoreDamagedError, match="record of an article is cut short"):
            ArticleRecord.unpack(damaged)
    without_topic = len(whole) - 2 - len(origin.topic.encode())
    with pytest.raises(StoreDamagedError, match="record of an article is cut short"):
        Sighting.unpack(whole[: data.draw(st.integers(0, without_topic - 1))])


@given(_TIMES, _ORIGINS)
def test_article_is_seen_when_its_message_came(published: int | None, origin: Origin | None) -> None:
    """It is the time of its message or else of its publication; otherwise it is unknown."""
    record = ArticleRecord((1,), (), 5, None, published, 9, None, 1, 0, "", origin)
    message = origin.timestamp_ms if origin else None
    assert record.seen_ms == (published if message is None else message)


@given(st.lists(_U64))
def test_keys_are_in_the_order_of_their_numbers(numbers: list[int]) -> None:
    """Keys compare like their numbers, whether made one by one or together."""
    keys = keys_of(np.array(numbers, np.uint64))
    assert keys == [key_of(number) for number in numbers]
    assert sorted(keys) == [key_of(number) for number in sorted(numbers)]


@given(st.lists(st.tuples(st.integers(0, 2**32 - 1), _U64), max_size=8))
def test_keys_of_a_generation_stand_together(pairs: list[tuple[int, int]]) -> None:
    """Prefixed keys sort by generation, then by number."""
    keys = [generation_prefix(generation) + key_of(number) for generation, number in pairs]
    assert [pair for _, pair in sorted(zip(keys, pairs, strict=True))] == sorted(pairs)


def test_rows_follow_one_another() -> None:
    """Joined rows are those of the first followed by those of the second."""
    one, other = _rows(1, 3), _rows(2, 2)
    for first, second, both in zip(_arrays(one), _arrays(other), _arrays(one.followed_by(other)), strict=True):
        assert both.tolist() == [*first.tolist(), *second.tolist()]
