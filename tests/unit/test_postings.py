"""Promises of the posting lists: a dictionary of lists with a cap, the newest kept."""

from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_dedup.hashing import U64
from stream_dedup.index.postings import Detail, PostingFamily, PostingLists, Postings, read_lists
from stream_dedup.index.store import Family, MemoryStore

_BATCHES = st.lists(st.lists(st.integers(0, 6), max_size=12), max_size=6)
_KEYS = np.arange(8, dtype=np.uint64) * np.uint64(2**61 - 1)


def _numbered(batches: list[list[int]], first: int) -> list[list[tuple[int, int]]]:
    """Return the keys of batches with the entries' numbers, which ascend; a posting may share its entry."""
    numbers = count(first)
    return [[(key, next(numbers)) for key in batch] for batch in batches]


def _arrays(kind: PostingFamily, new: list[tuple[int, int]]) -> tuple[U64, Postings]:
    """Return keys and postings; what each carries is of its entry."""
    entries = np.array([entry for _, entry in new], np.uint64)
    return _KEYS[[key for key, _ in new]], Postings(entries, _detail(kind, entries))


def _detail(kind: PostingFamily, entries: U64) -> U64:
    return {"none": entries & np.uint64(0), "size": entries & np.uint64(255), "fingerprint": ~entries}[kind.detail]


def _entries(lists: PostingLists) -> list[list[int]]:
    entries = lists.postings.entries
    return [entries[start:stop].tolist() for start, stop in zip(lists.offsets[:-1], lists.offsets[1:], strict=True)]


@pytest.mark.parametrize("detail", ["none", "size", "fingerprint"])
@given(
    keys=_BATCHES, cap=st.sampled_from([1, 2, 5, 64]), first=st.sampled_from([0, 250, 2**40 - 80]), again=st.booleans()
)
def test_lists_are_those_of_a_dictionary_with_a_cap(
    keys: list[list[int]],
    cap: int,
    first: int,
    again: bool,  # noqa: FBT001  # drawn
    detail: Detail,
) -> None:
    """After any batches each key's list holds the newest entries in order of arrival, at most `cap`.

    So also where each batch is written twice, as a replay after a crash may do.
    """
    batches = _numbered(keys, first)
    store, kind = MemoryStore(), PostingFamily(Family.TABLES, cap, detail)
    model: dict[int, list[int]] = {key: [] for key in range(len(_KEYS))}
    for batch in batches:
        for _ in range(1 + again):
            store.write([read_lists(store, kind, _KEYS, [0]).with_new(*_arrays(kind, batch))])
        for key, entry in batch:
            model[key] = [*model[key], entry][-cap:]
    lists = read_lists(store, kind, _KEYS, [0])
    assert _entries(lists) == list(model.values())
    assert (lists.postings.details == _detail(kind, lists.postings.entries)).all()


@given(
    keys=st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 6))), max_size=8),
    cap=st.sampled_from([1, 2, 64]),
)
def test_lists_run_from_the_oldest_generation_to_the_newest(keys: list[tuple[bool, list[int]]], cap: int) -> None:
    """Each generation has lists of its own with a cap of its own; read one after the other, while they live."""
    store, kind = MemoryStore(), PostingFamily(Family.LANDMARKS, cap)
    layers: list[dict[int, list[int]]] = [{key: [] for key in range(len(_KEYS))}]
    batches = _numbered([batch for _, batch in keys], 0)
    for (begins, _), batch in zip(keys, batches, strict=True):
        if begins:
            layers.append({key: [] for key in range(len(_KEYS))})
        live = list(range(max(0, len(layers) - 3), len(layers)))
        store.write([read_lists(store, kind, _KEYS, live).with_new(*_arrays(kind, batch))])
        for key, entry in batch:
            layers[-1][key] = [*layers[-1][key], entry][-cap:]
        model = [[entry for layer in live for entry in layers[layer][key]] for key in range(len(_KEYS))]
        assert _entries(read_lists(store, kind, _KEYS, live)) == model


def test_appending_nothing_writes_nothing() -> None:
    """A batch that indexes nothing leaves no write."""
    lists = read_lists(MemoryStore(), PostingFamily(Family.LANDMARKS, 4), _KEYS, [0])
    assert len(lists.with_new(*_arrays(lists.kind, [])).keys) == 0


def test_no_keys_have_no_lists() -> None:
    """Reading the lists of no keys gives none."""
    lists = read_lists(MemoryStore(), PostingFamily(Family.LANDMARKS, 4), np.empty(0, np.uint64), [0, 1])
    assert (lists.offsets.tolist(), len(lists.postings.entries)) == ([0], 0)


def test_families_do_not_share_lists() -> None:
    """The same key in two families has two lists."""
    store = MemoryStore()
    for family, entry in ((Family.LANDMARKS, 1), (Family.TABLES, 2)):
        kind = PostingFamily(family, 4)
        store.write([read_lists(store, kind, _KEYS, [0]).with_new(*_arrays(kind, [(0, entry)]))])
    read = [
        _entries(read_lists(store, PostingFamily(family, 4), _KEYS, [0]))[0]
        for family in (Family.LANDMARKS, Family.TABLES)
    ]
    assert read == [[1], [2]]
