"""Records that expire with the window: the newest under each key, across the generations that are left.

Knows that keys begin with the number of a generation; knows nothing of what records hold.
"""

from collections.abc import Iterator, Sequence

from stream_dedup.index.records.ledger import Generation, Progress
from stream_dedup.index.records.records import generation_prefix, key_of
from stream_dedup.index.stores.store import Drop, Family, Puts, Store

EXPIRING = (Family.ARTICLES, Family.URLS, Family.CLUSTERS, Family.MEMBERS)


def newest(store: Store, family: Family, keys: Sequence[bytes], live: Sequence[int]) -> list[bytes | None]:
    """Return the newest record under each key, None if there is none.

    Args:
        store: the state.
        family: one of `EXPIRING`.
        keys: without a generation.
        live: generations that have not expired, the newest last.
    """
    found: list[bytes | None] = [None] * len(keys)
    missing = list(range(len(keys)))
    for generation in reversed(live):
        values = store.get_many(family, _keys([keys[place] for place in missing], generation))
        for place, value in zip(missing, values, strict=True):
            found[place] = value
        missing = [place for place, value in zip(missing, values, strict=True) if value is None]
        if not missing:
            break
    return found


def put_records(puts: Puts, live: Sequence[int]) -> Iterator[Puts]:
    """Yield the writes that put records into the newest generation, or delete them from all.

    Args:
        puts: under keys without a generation; a value of None deletes.
        live: generations that have not expired, the newest last.
    """
    yield Puts(puts.family, _keys(puts.keys, live[-1]), puts.values)
    if None in puts.values:
        deleted = [key for key, value in puts.pairs() if value is None]
        for generation in live[:-1]:
            yield Puts(puts.family, _keys(deleted, generation), [None] * len(deleted))


def expire(before: Progress, after: Progress) -> Iterator[Drop]:
    """Yield the writes that delete what has expired since an earlier progress."""
    first, last = before.generations[0], after.generations[0]
    if first.number != last.number:
        yield from ranges(first, last)


def ranges(first: Generation, last: Generation) -> Iterator[Drop]:
    """Yield the writes that delete all keys from one generation up to, but not including, another."""
    for family in EXPIRING:
        yield Drop(family, generation_prefix(first.number), generation_prefix(last.number))
    yield Drop(Family.ENTRIES, key_of(first.first_entry), key_of(last.first_entry))


def _keys(keys: Sequence[bytes], generation: int) -> list[bytes]:
    prefix = generation_prefix(generation)
    return [prefix + key for key in keys]
