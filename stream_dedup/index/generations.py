"""Records that expire with the window: the newest under each key, over the generations that are left.

Knows that keys begin with the number of a generation; knows nothing of what records hold.
"""

from collections.abc import Iterator, Sequence

from stream_dedup.index.ledger import Generation, Progress
from stream_dedup.index.records import generation_prefix, key_of
from stream_dedup.index.store import Drop, Family, Put, Store

EXPIRING = (Family.ARTICLES, Family.URLS, Family.CLUSTERS)


def newest(store: Store, family: Family, keys: Sequence[bytes], live: Sequence[int]) -> list[bytes | None]:
    """Return the newest record under each key, None where there is none.

    Args:
        store: the state.
        family: one of `EXPIRING`.
        keys: without a generation.
        live: generations that have not expired, the newest last.
    """
    found: list[bytes | None] = [None] * len(keys)
    missing = list(range(len(keys)))
    for generation in reversed(live):
        prefix = generation_prefix(generation)
        values = store.get_many(family, [prefix + keys[place] for place in missing])
        for place, value in zip(missing, values, strict=True):
            found[place] = value
        missing = [place for place, value in zip(missing, values, strict=True) if value is None]
        if not missing:
            break
    return found


def put_record(put: Put, live: Sequence[int]) -> Iterator[Put]:
    """Yield the writes that put a record into the newest generation, or delete it from all.

    Args:
        put: its key without a generation; a value of None deletes.
        live: generations that have not expired, the newest last.
    """
    if put.value is not None:
        yield Put(put.family, generation_prefix(live[-1]) + put.key, put.value)
        return
    for generation in live:
        yield Put(put.family, generation_prefix(generation) + put.key, None)


def expire(before: Progress, after: Progress) -> Iterator[Drop]:
    """Yield the writes that delete what has expired between two moments."""
    first, last = before.generations[0], after.generations[0]
    if first.number != last.number:
        yield from ranges(first, last)


def ranges(first: Generation, last: Generation) -> Iterator[Drop]:
    """Yield the ranges of all keys from one generation up to, not including, another."""
    for family in EXPIRING:
        yield Drop(family, generation_prefix(first.number), generation_prefix(last.number))
    yield Drop(Family.ENTRIES, key_of(first.first_entry), key_of(last.first_entry))
