"""What an index takes: bytes in memory and on disk, and time an article.

Knows record layouts and measured overheads; knows nothing of recall.

The constants were measured by `make bench-plan` on one core of a two-core virtual machine with an SSD, on an index of a
million entries after compaction; they are what an article costs there, not a promise for another machine.
"""

from dataclasses import dataclass
from math import log2

import numpy as np

from stream_dedup.fingerprint.features import landmark_rule
from stream_dedup.fingerprint.sketch import VALUE_BITS, landmark_count
from stream_dedup.index.entry_codec import HASH_BITS, MARK_BITS
from stream_dedup.index.plan import TablePlan
from stream_dedup.settings import Settings

GENERATIONS = 3  # that are live: two make a window, and a third is being written to
# Windows that are on disk just before a generation expires; on average it is an eighth less.
HELD_WINDOWS = 2.0
# RocksDB writes out what has gathered in write buffers when the log behind them has this size.
_WRITE_BUFFERS = 256e6

TYPICAL_GRAMS = 800  # distinct n-grams of an article of 900 characters
TYPICAL_NUMBERS, TYPICAL_PLACES = 9, 4  # in its sketches
TYPICAL_NAME = 24  # bytes of an article's id
# Bytes in a family's files, after compression and what neighbouring keys share, with filters of 10 bits a key.
_FIGURES_BYTES = 36  # of an entry: hashes, times, sizes
_ENTRY_BYTES = 21  # of an entry's key, and what RocksDB adds
_RECORD_BYTES = 75  # of an article's record and its URL's, of real names and sources
_POSTING_BYTES = 14.5  # of a posting with a fingerprint, beside its key
_KEY_BYTES = 7.3  # of a key of the tables
_LANDMARK_BYTES = 13.2  # of a posting of the landmarks, key included
_CONTENT_BYTES = 17.0
_PROCESS = 350e6  # dictionaries, compiled loops, the epoch's counts, a batch

_PROBE_US = 0.006  # a key computed and its bit looked at
_KEY_US = 3.5  # a key looked up in one generation
_POSTING_US = 0.4  # a posting read and its distance taken
_ENTRY_US = 20.0  # an entry read, and compared
_INSERT_US = 8.0  # a posting written, its compactions included
# What a core costs that judges an article in 450 us is what 8 GB of memory cost, or 250 GB of disk.
_US_PER_MEMORY_GB = 450 / 8
_US_PER_DISK_GB = 450 / 250


@dataclass(frozen=True, slots=True)
class Traffic:
    """What is to be indexed.

    Attributes:
        articles: in a window.
        indexed_share: of them that are indexed: canonical articles and drifted variants.
    """

    articles: float
    indexed_share: float

    @property
    def entries(self) -> float:
        """Entries that are held at most."""
        return HELD_WINDOWS * self.articles * self.indexed_share


@dataclass(frozen=True, slots=True)
class Space:
    """Bytes of an index.

    Attributes:
        bitmaps: of the occupied keys, one for each live generation and one of all.
        memory: of the process: bitmaps, block cache, write buffers and all else.
        tables: on disk, of the SimHash tables.
        disk: of all families, without the log, which RocksDB bounds at 256 MB.
    """

    bitmaps: float
    memory: float
    tables: float
    disk: float


def space_of(plan: TablePlan, traffic: Traffic, settings: Settings) -> Space:
    """Return what an index takes.

    Args:
        plan: the tables.
        traffic: what is to be indexed.
        settings: of sketches, landmarks and the block cache.
    """
    bitmaps = (GENERATIONS + 1) * plan.tables * max(8.0, 2**plan.prefix_bits / 8)
    tables = plan.tables * (traffic.entries * _POSTING_BYTES + _keys(plan, traffic) * _KEY_BYTES)
    records = HELD_WINDOWS * traffic.articles * _RECORD_BYTES
    return Space(
        bitmaps,
        bitmaps + settings.state.cache_bytes + _WRITE_BUFFERS + _PROCESS,
        tables,
        tables + records + traffic.entries * _indexed_bytes(settings),
    )


def microseconds(tables: int, probes: float, keys: float, postings: float, candidates: float, indexed: float) -> float:
    """Return the time that the SimHash tables take of an article, on one core.

    Args:
        tables: T.
        probes: keys tried, in all tables.
        keys: looked up.
        postings: read.
        candidates: entries read.
        indexed: share of the articles that are indexed.
    """
    return (
        _PROBE_US * probes
        + _KEY_US * GENERATIONS * keys
        + _POSTING_US * postings
        + _ENTRY_US * candidates
        + _INSERT_US * tables * indexed
    )


def weighed(time_us: float, space: Space) -> float:
    """Return time, memory and disk as one figure in microseconds an article, by what they cost to rent."""
    return time_us + space.memory / 1e9 * _US_PER_MEMORY_GB + space.disk / 1e9 * _US_PER_DISK_GB


def _keys(plan: TablePlan, traffic: Traffic) -> float:
    """Return how many keys of a table are occupied in all generations together, were fingerprints random."""
    loads = traffic.entries / GENERATIONS / 2**plan.prefix_bits
    return float(-GENERATIONS * 2**plan.prefix_bits * np.expm1(-loads))


def entry_bytes(settings: Settings) -> float:
    """Return the bytes of a typical article's entry, as it is packed, name included; see `EntryFormat.pack`."""
    sketch = settings.sketch
    bits = (
        _sketch_bits(VALUE_BITS, sketch.size, TYPICAL_GRAMS)
        + _sketch_bits(HASH_BITS, sketch.numbers, TYPICAL_NUMBERS)
        + _sketch_bits(HASH_BITS, sketch.places, TYPICAL_PLACES)
        + _marks(settings) * MARK_BITS
    )
    return bits / 8 + _FIGURES_BYTES + TYPICAL_NAME


def _indexed_bytes(settings: Settings) -> float:
    """Return the bytes of an entry and of its postings, but for those of the tables."""
    postings = _marks(settings) * _LANDMARK_BYTES if settings.landmarks.enabled else 0.0
    return entry_bytes(settings) + _ENTRY_BYTES + postings + _CONTENT_BYTES


def _marks(settings: Settings) -> int:
    return landmark_count(TYPICAL_GRAMS, landmark_rule(settings))


def _sketch_bits(bits: int, most: int, size: int) -> float:
    """Return the bits of a sketch of a set: of each gap those of the mean, and 1.5; see `stream_dedup.index.bits`."""
    return min(most, size) * (bits - log2(size) + 1.5)
