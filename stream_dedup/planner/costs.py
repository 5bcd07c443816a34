"""What an index costs: bytes in memory and on disk, and time per article.

Knows record layouts and measured overheads; knows nothing of recall.

The constants were measured by `make bench-plan` on one core of a two-core virtual machine with an SSD, on an index of a
million entries after compaction; they are the costs on that machine, not a promise for another one.
"""

from dataclasses import dataclass
from math import log2

from stream_dedup.engine.window import GENERATIONS_PER_WINDOW
from stream_dedup.fingerprint.features import landmark_rule
from stream_dedup.fingerprint.particulars import PARTICULAR_BITS
from stream_dedup.fingerprint.sketch import VALUE_BITS, landmark_count
from stream_dedup.index.entries.codec import MARK_BITS
from stream_dedup.index.lookup.plan import TablePlan
from stream_dedup.planner.lists import GENERATIONS, TYPICAL_GRAMS, others_of, packed, runs_of, tables_of
from stream_dedup.settings import Settings

# Windows on disk just before a generation expires; the average is a sixth less.
HELD_WINDOWS = GENERATIONS / GENERATIONS_PER_WINDOW
# RocksDB flushes its write buffers when their log reaches this size.
_WRITE_BUFFERS = 256e6

TYPICAL_NUMBERS, TYPICAL_PLACES = 9, 4  # in an article's sketches
TYPICAL_NAME = 24  # bytes of an article's id
# Bytes in a family's files, after compression and prefix sharing between neighbouring keys, with filters of 10 bits
# per key.
_FIGURES_BYTES = 36  # figures of an entry: hashes, times, sizes
_ENTRY_BYTES = 21  # an entry's key, and RocksDB's overhead
_RECORD_BYTES = 75  # the records of an article and of its URL, with real names and sources
_PROCESS = 420e6  # dictionaries, compiled loops, word counts, a batch, and the postings that are not in a run yet

_ARTICLE_US = 1.5  # fixed, per article
_PROBE_US = 0.04  # to compute a key
_ASK_US = 0.01  # to check it against the filter of one run
_KEY_US = 0.2  # to look up a key in all runs
_BLOCK_US = 0.5  # to read a block
_POSTING_US = 0.04  # to read a posting and compute its distance
_ENTRY_US = 10.0  # to read an entry, mostly not from the block cache, and compare it
_INSERT_US = 0.3  # to write a posting, including its merges
# A core, which judges an article in 170 us, costs as much as 8 GB of memory or 250 GB of disk.
_US_PER_MEMORY_GB = 170 / 8
_US_PER_DISK_GB = 170 / 250


@dataclass(frozen=True, slots=True)
class Traffic:
    """What the index has to hold.

    Attributes:
        articles: articles per window.
        indexed_share: share of them that are indexed: canonical articles and drifted variants.
        reserve_share: share of them whose entry is kept in reserve, on disk only: one copy of each cluster.
    """

    articles: float
    indexed_share: float
    reserve_share: float = 0.0

    @property
    def entries(self) -> float:
        """Largest number of entries in the index."""
        return HELD_WINDOWS * self.articles * self.indexed_share

    @property
    def kept(self) -> float:
        """Largest number of entries on disk."""
        return HELD_WINDOWS * self.articles * (self.indexed_share + self.reserve_share)


@dataclass(frozen=True, slots=True)
class Space:
    """Space that an index takes, in bytes.

    Attributes:
        filters: filters of the SimHash tables, in memory.
        lists: filters and fences of all posting lists, in memory.
        memory: memory of the process: lists, block cache, write buffers and everything else.
        cached: blocks of all posting lists, which look-ups read from the system's page cache.
        tables: the SimHash tables, on disk.
        disk: all runs and families, without the log, which RocksDB limits to 256 MB.
    """

    filters: float
    lists: float
    memory: float
    cached: float
    tables: float
    disk: float


def space_of(plan: TablePlan | None, traffic: Traffic, settings: Settings) -> Space:
    """Return the space that an index takes.

    Args:
        plan: the tables; None for an index without them.
        traffic: what the index has to hold.
        settings: those of sketches, landmarks and the block cache are used.
    """
    runs = runs_of(traffic.entries)
    tables = [(packed(tables_of(plan, settings), size), count) for size, count in runs] if plan else []
    others = [(packed(lists, size), count) for lists in others_of(settings) for size, count in runs]
    in_memory = sum(part.memory * count for part, count in (*tables, *others))
    blocks = sum(part.packed * count for part, count in (*tables, *others))
    records = HELD_WINDOWS * traffic.articles * _RECORD_BYTES
    return Space(
        sum(part.filter * count for part, count in tables),
        in_memory,
        in_memory + settings.state.cache_bytes + _WRITE_BUFFERS + _PROCESS,
        blocks,
        sum(part.disk * count for part, count in tables),
        blocks + in_memory + records + traffic.kept * (entry_bytes(settings) + _ENTRY_BYTES),
    )


def microseconds(
    tables: int, probes: float, runs: int, keys: float, blocks: float, postings: float, candidates: float
) -> float:
    """Return the time that the SimHash tables take for a new article, in microseconds of one core.

    Args:
        tables: number of tables.
        probes: keys tried, in all tables.
        runs: number of runs.
        keys: keys looked up.
        blocks: blocks of runs read.
        postings: postings read.
        candidates: entries read.
    """
    return (
        _ARTICLE_US
        + (_PROBE_US + _ASK_US * runs) * probes
        + _KEY_US * keys
        + _BLOCK_US * blocks
        + _POSTING_US * postings
        + _ENTRY_US * candidates
        + _INSERT_US * tables
    )


def weighed(time_us: float, space: Space) -> float:
    """Return time, memory and disk as one figure in microseconds per article, weighted by what they cost to rent."""
    return time_us + space.memory / 1e9 * _US_PER_MEMORY_GB + space.disk / 1e9 * _US_PER_DISK_GB


def entry_bytes(settings: Settings) -> float:
    """Return the packed size of a typical article's entry in bytes, name included; see `EntryFormat.pack`."""
    sketch = settings.sketch
    bits = (
        _sketch_bits(VALUE_BITS, sketch.size, TYPICAL_GRAMS)
        + _sketch_bits(PARTICULAR_BITS, sketch.numbers, TYPICAL_NUMBERS)
        + _sketch_bits(PARTICULAR_BITS, sketch.places, TYPICAL_PLACES)
        + landmark_count(TYPICAL_GRAMS, landmark_rule(settings)) * MARK_BITS
    )
    return bits / 8 + _FIGURES_BYTES + TYPICAL_NAME


def _sketch_bits(bits: int, most: int, size: int) -> float:
    """Return the bits of the sketch of a set: per gap, those of the mean gap plus 1.5; see `index.entries.bits`."""
    return min(most, size) * (bits - log2(size) + 1.5)
