"""A batch's keys of one kind: those that each article is indexed under, and those that it looks up.

Knows key values and how they are numbered; knows nothing of what the keys are made from.
"""

from dataclasses import dataclass

import numpy as np

from stream_dedup.arrays import I64, U64, Bool
from stream_dedup.compiled.hashing import EMPTY, MIX_1, MIX_2, find_slot, mix64, range_of_key, table_size
from stream_dedup.compiled.kernel import kernel
from stream_dedup.text.texts import offsets_of

NO_KEY = -1


@dataclass(frozen=True, slots=True)
class BatchKeys:
    """Keys of n articles.

    Attributes:
        own: keys under which each article is indexed, shape (n, k).
        used: which of these are in use, shape (n, k).
        offsets: article i looks up looked_up[offsets[i]:offsets[i + 1]], shape (n + 1,).
        looked_up: keys.
        same_keys: whether each article looks up exactly the keys that it is indexed under, in the same order.
    """

    own: U64
    used: Bool
    offsets: I64
    looked_up: U64
    same_keys: bool = False

    @classmethod
    def same(cls, own: U64, used: Bool) -> "BatchKeys":
        """Return the keys of articles that look up the keys they are indexed under."""
        return cls(own, used, offsets_of(used.sum(axis=1)), own[used], same_keys=True)

    @classmethod
    def none(cls, articles: int) -> "BatchKeys":
        """Return the keys of a number of articles that have none."""
        own = np.empty((articles, 0), np.uint64)
        return cls(own, own.astype(np.bool_), np.zeros(articles + 1, np.int64), np.empty(0, np.uint64))

    def masked(self, masks: U64) -> "BatchKeys":
        """Return the keys, those of each article XORed with its mask; `masks` has shape (n,)."""
        if not masks.any():
            return self
        looked_up = self.looked_up ^ np.repeat(masks, np.diff(self.offsets))
        return BatchKeys(masked(self.own, masks), self.used, self.offsets, looked_up, self.same_keys)

    def own_among_looked_up(self) -> Bool:
        """Tell for each key that is looked up whether an article of the batch is indexed under it."""
        return np.asarray(is_member(self.looked_up, self.own[self.used]))

    def only(self, wanted: Bool) -> "BatchKeys":
        """Return the keys, but look up only those that are wanted, shape of `looked_up`."""
        return BatchKeys(self.own, self.used, _offsets_of(wanted, self.offsets), self.looked_up[wanted])

    def numbered(self) -> "NumberedKeys":
        """Return the keys as indices into the distinct keys in ascending order."""
        own = self.own[self.used]
        distinct, numbers = _distinct(own if self.same_keys else np.concatenate([own, self.looked_up]))
        looked_up = numbers if self.same_keys else numbers[len(own) :]
        places = np.full(self.own.shape, NO_KEY, np.int64)
        places[self.used] = numbers[: len(own)]
        return NumberedKeys(distinct, places, self.offsets, looked_up)


@dataclass(frozen=True, slots=True)
class NumberedKeys:
    """Keys of n articles, as indices into the distinct keys.

    Attributes:
        distinct: ascending, shape (m,).
        own: number of each key under which an article is indexed, `NO_KEY` where unused, shape (n, k).
        offsets: article i looks up looked_up[offsets[i]:offsets[i + 1]], shape (n + 1,).
        looked_up: numbers.
    """

    distinct: U64
    own: I64
    offsets: I64
    looked_up: I64

    def only(self, wanted: Bool) -> "NumberedKeys":
        """Return the keys, but look up only those that are wanted, shape of `looked_up`."""
        return NumberedKeys(self.distinct, self.own, _offsets_of(wanted, self.offsets), self.looked_up[wanted])


def batch_ahead(own: I64, keys: int) -> I64:
    """Return how many other articles of a batch may be listed under each key that an article has, shape (keys,).

    Args:
        own: number of each key under which an article is indexed, `NO_KEY` where unused, shape (n, k).
        keys: number of keys.
    """
    return np.maximum(np.bincount(own[own != NO_KEY], minlength=keys) - 1, 0)


@kernel
def articles_under(own: I64, keys: int) -> tuple[I64, U64]:
    """Return which articles of a batch are indexed under each key, those of key i at offsets[i]:offsets[i + 1].

    Args:
        own: number of each key under which an article is indexed, `NO_KEY` where unused, shape (n, k).
        keys: number of keys.

    Returns:
        Offsets, shape (keys + 1,), and numbers of articles.
    """
    offsets = np.zeros(keys + 1, np.int64)
    for key in own.ravel():
        if key != NO_KEY:
            offsets[key + 1] += 1
    for before in range(keys):
        offsets[before + 1] += offsets[before]
    articles, places = np.empty(offsets[keys], np.uint64), offsets.copy()
    for article in range(len(own)):
        for key in own[article]:
            if key != NO_KEY:
                articles[places[key]] = np.uint64(article)
                places[key] += 1
    return offsets, articles


def _offsets_of(wanted: Bool, offsets: I64) -> I64:
    """Return the offsets once only the wanted keys are left."""
    return np.asarray(offsets_of(wanted)[offsets])


@kernel
def _distinct(keys: U64) -> tuple[U64, I64]:
    """Return the distinct keys, ascending, and the index of each key in them: `np.unique`, in a quarter of the time.

    Keys are spread evenly: sorted by their uppermost bits into as many buckets as keys, each holds only a few to sort.
    """
    stops = np.zeros(len(keys) + 1, np.int64)
    for key in keys:
        stops[range_of_key(key, len(keys)) + 1] += 1
    for slot in range(len(keys)):
        stops[slot + 1] += stops[slot]
    ascending, order = np.empty_like(keys), np.empty(len(keys), np.int64)
    for i in range(len(keys)):
        slot = range_of_key(keys[i], len(keys))
        place = stops[slot]
        ascending[place], order[place] = keys[i], i
        stops[slot] += 1
    _put_in_order(ascending, order)
    distinct, places, count = np.empty_like(keys), np.empty(len(keys), np.int64), 0
    for i in range(len(keys)):
        if count == 0 or distinct[count - 1] != ascending[i]:
            distinct[count] = ascending[i]
            count += 1
        places[order[i]] = count - 1
    return distinct[:count].copy(), places


@kernel
def _put_in_order(keys: U64, order: I64) -> None:
    """Sort keys that are nearly sorted, and `order` along with them, by insertion."""
    for i in range(1, len(keys)):
        key, number, place = keys[i], order[i], i
        while place > 0 and keys[place - 1] > key:
            keys[place], order[place] = keys[place - 1], order[place - 1]
            place -= 1
        keys[place], order[place] = key, number


def interleaved(offsets: list[I64], keys: list[I64]) -> tuple[I64, I64]:
    """Join the look-ups of several kinds of keys, article by article; within an article, in the order of the kinds."""
    return _interleaved(np.stack(offsets), offsets_of([*map(len, keys)]), np.concatenate(keys))


@kernel
def _interleaved(offsets: I64, firsts: I64, keys: I64) -> tuple[I64, I64]:
    joined, together = np.zeros(offsets.shape[1], np.int64), np.empty_like(keys)
    used = 0
    for i in range(offsets.shape[1] - 1):
        for kind in range(len(offsets)):
            for place in range(offsets[kind, i], offsets[kind, i + 1]):
                together[used] = keys[firsts[kind] + place]
                used += 1
        joined[i + 1] = used
    return joined, together


@kernel
def is_member(keys: U64, some: U64) -> Bool:
    """Tell for each key whether it is in `some`, shape of `keys`."""
    table = np.full(table_size(len(some)), EMPTY)
    holds_empty = False
    for key in some:
        hashed = mix64(key)
        holds_empty |= hashed == EMPTY
        table[find_slot(table, hashed)] = hashed
    found = np.empty(len(keys), np.bool_)
    for i in range(len(keys)):
        hashed = mix64(keys[i])
        found[i] = table[find_slot(table, hashed)] == hashed if hashed != EMPTY else holds_empty
    return found


def spread(numbers: U64, bits: int) -> U64:
    """Map numbers of at most `bits` bits, which is at least 2, to distinct keys with evenly spread uppermost bits.

    Multiplications by odd numbers and XORs with shifts can be undone, so no two numbers get the same key; the lowest
    64 - bits bits of all keys are zero.
    """
    return np.asarray(_spread(numbers.ravel(), np.uint64(64 - bits), np.uint64(bits // 2)).reshape(numbers.shape))


@kernel
def _spread(numbers: U64, zero_bits: np.uint64, half: np.uint64) -> U64:
    keys = np.empty_like(numbers)
    for i in range(len(numbers)):
        mixed = (numbers[i] * MIX_1) << zero_bits
        mixed ^= (mixed >> zero_bits + half) << zero_bits
        keys[i] = mixed * MIX_2
    return keys


def masked(own: U64, masks: U64) -> U64:
    """Return keys, shape (n, k), each row XORed with its mask, shape (n,)."""
    return own ^ masks[:, np.newaxis] if masks.any() else own
