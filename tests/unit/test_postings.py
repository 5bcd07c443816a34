"""Promises of the posting lists: a dictionary of lists with a cap, the newest kept."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from stream_dedup.hashing import I64, U64
from stream_dedup.index.postings import PostingFamily, PostingLists, read_lists
from stream_dedup.index.store import Family, MemoryStore

_BATCHES = st.lists(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 2**64 - 1)), max_size=12), max_size=6)
_KEYS = np.arange(8, dtype=np.uint64) * np.uint64(2**61 - 1)


def _arrays(kind: PostingFamily, new: list[tuple[int, int]]) -> tuple[I64, NDArray[np.void]]:
    """Return key numbers and postings; where they carry a fingerprint, it is the entry's complement."""
    postings = np.zeros(len(new), kind.layout)
    postings["entry"] = np.array([entry for _, entry in new], np.uint64)
    if kind.fingerprints:
        postings["fingerprint"] = ~postings["entry"]
    return np.array([key for key, _ in new], np.int64), postings


def _entries(lists: PostingLists) -> list[list[int]]:
    entries: U64 = lists.postings["entry"]
    return [entries[start:stop].tolist() for start, stop in zip(lists.offsets[:-1], lists.offsets[1:], strict=True)]


@pytest.mark.parametrize("fingerprints", [False, True])
@given(batches=_BATCHES, cap=st.sampled_from([1, 2, 5, 64]))
def test_lists_are_those_of_a_dictionary_with_a_cap(
    batches: list[list[tuple[int, int]]],
    cap: int,
    fingerprints: bool,  # noqa: FBT001  # parametrised
) -> None:
    """After any batches each key's list holds the newest entries in order of arrival, at most `cap`."""
    store, kind = MemoryStore(), PostingFamily(Family.TABLES, cap, fingerprints)
    model: dict[int, list[int]] = {key: [] for key in range(len(_KEYS))}
    for batch in batches:
        lists = read_lists(store, kind, _KEYS)
        store.write(list(lists.with_new(*_arrays(kind, batch))))
        for key, entry in batch:
            model[key] = [*model[key], entry][-cap:]
    lists = read_lists(store, kind, _KEYS)
    assert _entries(lists) == list(model.values())
    if fingerprints:
        assert (lists.postings["fingerprint"] == ~lists.postings["entry"]).all()


def test_appending_nothing_writes_nothing() -> None:
    """A batch that indexes nothing leaves no write."""
    lists = read_lists(MemoryStore(), PostingFamily(Family.LANDMARKS, 4), _KEYS)
    assert list(lists.with_new(*_arrays(lists.kind, []))) == []


def test_no_keys_have_no_lists() -> None:
    """Reading the lists of no keys gives none."""
    lists = read_lists(MemoryStore(), PostingFamily(Family.LANDMARKS, 4), np.empty(0, np.uint64))
    assert (lists.offsets.tolist(), len(lists.postings)) == ([0], 0)


def test_families_do_not_share_lists() -> None:
    """The same key in two families has two lists."""
    store = MemoryStore()
    for family, entry in ((Family.LANDMARKS, 1), (Family.TABLES, 2)):
        kind = PostingFamily(family, 4)
        store.write(list(read_lists(store, kind, _KEYS).with_new(*_arrays(kind, [(0, entry)]))))
    read = [
        _entries(read_lists(store, PostingFamily(family, 4), _KEYS))[0] for family in (Family.LANDMARKS, Family.TABLES)
    ]
    assert read == [[1], [2]]
