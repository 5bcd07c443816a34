"""Entries: what later articles are compared with.

Knows their layout, in memory and as they are stored; knows nothing of when they are written.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stream_dedup.arrays import I64, U8, U32, U64
from stream_dedup.fingerprint.sketch import LandmarkRule
from stream_dedup.index.entries.codec import (
    FIGURES,
    MARK_BITS,
    SOUND,
    Columns,
    decode,
    encode,
    landmark_keys,
    padded,
)
from stream_dedup.index.records.records import damage_message
from stream_dedup.index.stores.store import StoreDamagedError

# Flags of an entry: which keys it has (none if it is in reserve), whether it is a drifted copy, whether its cluster
# admits no further drifted copies to the index, whether it is bare of content (then it has no keys at all), and whether
# it was not segmented into words (then it has no fingerprint).
COMPARABLE, IN_TABLES, RESERVE, VARIANT, SEALED, BARE, UNSEGMENTED = 1, 2, 4, 8, 16, 32, 64
_MARK = np.uint64((1 << MARK_BITS) - 1)
_LEAST_ROWS = 2

Entries = NDArray[np.void]  # of `EntryFormat.layout`


class Rows(NamedTuple):
    """What n texts are compared by, one row per text.

    Attributes:
        fingerprints: SimHash, shape (n,).
        contents: content hash, shape (n,).
        times: window time, milliseconds since 1970 in UTC, shape (n,).
        sketches: bottom-k sketch, shape (n, k).
        lengths: number of values in use in each sketch, shape (n,).
        sizes: number of distinct n-grams, shape (n,).
        numbers: number sketch, shape (n, j).
        number_lengths: number of values in use in each number sketch, shape (n,).
        number_sizes: number of distinct numbers, shape (n,).
        places: sketch of the places named in the text, shape (n, p).
        place_lengths: number of values in use in each place sketch, shape (n,).
        place_sizes: number of distinct places, shape (n,).
        flags: `COMPARABLE` and so on, uint8, shape (n,).
        scopes: number of the scope, 0 for none, shape (n,).
    """

    fingerprints: U64
    contents: U64
    times: I64
    sketches: U32
    lengths: I64
    sizes: I64
    numbers: U32
    number_lengths: I64
    number_sizes: I64
    places: U32
    place_lengths: I64
    place_sizes: I64
    flags: U8
    scopes: U64

    def followed_by(self, other: "Rows") -> "Rows":
        """Return the rows of both, these first."""
        pairs: Iterator[tuple[NDArray[Any], NDArray[Any]]] = zip(self, other, strict=True)
        return Rows(*(np.concatenate(pair) for pair in pairs))

    def only(self, row: int) -> "Rows":
        """Return a single row, without copying it."""
        columns: Iterator[NDArray[Any]] = iter(self)
        return Rows(*(column[row : row + 1] for column in columns))


class EntryFormat:
    """How entries are held in arrays, and packed with the names of their articles.

    The first values of the sketch are the upper bits of the landmarks, so only their other bits are kept separately.

    Args:
        sketch: number of values in a sketch.
        numbers: number of values in a number sketch.
        places: number of values in a place sketch.
        rule: how many landmarks a text has.
    """

    def __init__(self, sketch: int, numbers: int, places: int, rule: LandmarkRule) -> None:
        self._rule = rule
        self.layout = np.dtype(
            [
                *((name, "<i8" if name == "window_ms" else "<u8") for name in FIGURES),
                ("numbers", "<u4", (numbers,)),
                ("places", "<u4", (places,)),
                ("sketch", "<u4", (sketch,)),
                ("landmarks", np.min_scalar_type(int(_MARK)), (rule.most,)),
                ("flags", "<u1"),
            ],
            align=True,
        )

    def entries(self, rows: Rows, places: I64, landmarks: U64, epoch: int) -> Entries:
        """Return some rows as the fixed parts of entries, without clusters.

        Args:
            rows: all rows.
            places: indices of the rows to return, shape (m,).
            landmarks: landmarks of each of these, shape (m, rule.most).
            epoch: number of the IDF epoch of their fingerprints.
        """
        fixed = np.zeros(len(places), self.layout)
        fixed["fingerprint"], fixed["content"] = rows.fingerprints[places], rows.contents[places]
        fixed["window_ms"], fixed["epoch"] = rows.times[places], epoch
        fixed["size"], fixed["length"] = rows.sizes[places], rows.lengths[places]
        fixed["number_length"], fixed["number_size"] = rows.number_lengths[places], rows.number_sizes[places]
        fixed["place_length"], fixed["place_size"] = rows.place_lengths[places], rows.place_sizes[places]
        fixed["flags"], fixed["places"] = rows.flags[places], rows.places[places]
        fixed["scope"] = rows.scopes[places]
        fixed["numbers"], fixed["sketch"] = rows.numbers[places], rows.sketches[places]
        fixed["landmarks"] = landmarks & _MARK
        return fixed

    def landmark_keys(self, entries: Entries) -> U64:
        """Return the landmarks of entries, 0 where a text has fewer, shape (m, rule.most)."""
        return landmark_keys(_columns(_some(entries)), len(entries), self._rule)

    def pack(self, entries: Entries, names: Sequence[bytes]) -> list[bytes]:
        """Return entries as they are stored, each with the name of its article, as UTF-8."""
        joined = np.frombuffer(bytearray().join(names), np.uint8)
        words, stops = encode(_columns(_some(entries)), joined, _stops(names), self._rule)
        packed, ends = words.tobytes(), stops.tolist()
        return [packed[start:stop] for start, stop in zip([0, *ends], ends, strict=False)]

    def unpack(self, packed: Sequence[bytes]) -> tuple[Entries, list[bytes]]:
        """Return the fixed parts of stored entries, and the names of their articles, as UTF-8.

        Raises:
            StoreDamagedError: one of them is cut short, or is not an entry.
        """
        fixed = np.zeros(max(len(packed), _LEAST_ROWS), self.layout)
        joined, stops = b"".join(packed), _stops(packed)
        names, damaged = decode(padded(joined), stops, _columns(fixed), self._rule)
        if damaged != SOUND:
            raise StoreDamagedError(damage_message("an entry", packed[damaged]))
        begins = (stops - names).tolist()
        return fixed[: len(packed)], [joined[begin:stop] for begin, stop in zip(begins, stops.tolist(), strict=True)]

    def joined(self, parts: Sequence[Entries]) -> Entries:
        """Concatenate fixed parts; `np.concatenate` would first compare the layouts of all of them."""
        return np.frombuffer(bytearray().join([part.tobytes() for part in parts]), self.layout)

    def only(self, entries: Entries, places: I64) -> Entries:
        """Return the fixed parts at some places, shape of `places`; numpy's own indexing would copy field by field."""
        return entries.view(np.dtype((np.void, self.layout.itemsize)))[places].view(self.layout)

    def fixed(self, packed: Sequence[bytes]) -> Entries:
        """Return the fixed parts of stored entries; see `unpack`."""
        return self.unpack(packed)[0]


def _some(entries: Entries) -> Entries:
    """Return entries, repeated if they are too few for `_columns`."""
    return entries if len(entries) >= _LEAST_ROWS else np.resize(entries, _LEAST_ROWS)


def _columns(entries: Entries) -> Columns:
    """Return the fields of entries, as views of their memory.

    The fields of a single row count as contiguous in numpy, and numba would compile all loops a second time for them.
    """
    return Columns(
        entries["flags"],
        entries.view(np.uint64).reshape(len(entries), -1)[:, : len(FIGURES)],
        entries["numbers"],
        entries["places"],
        entries["sketch"],
        entries["landmarks"],
    )


def _stops(parts: Sequence[bytes]) -> U64:
    """Return the end of each part in bytes once they are concatenated."""
    return np.cumsum(np.fromiter(map(len, parts), np.uint64, len(parts)))


def rows_of_entries(entries: Entries) -> Rows:
    """Return the rows of entries."""
    return Rows(
        entries["fingerprint"].copy(),
        entries["content"].copy(),
        entries["window_ms"].copy(),
        entries["sketch"].copy(),
        entries["length"].astype(np.int64),
        entries["size"].astype(np.int64),
        entries["numbers"].copy(),
        entries["number_length"].astype(np.int64),
        entries["number_size"].astype(np.int64),
        entries["places"].copy(),
        entries["place_length"].astype(np.int64),
        entries["place_size"].astype(np.int64),
        entries["flags"].copy(),
        entries["scope"].copy(),
    )
