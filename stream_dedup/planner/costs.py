"""What an index takes: bytes in memory and on disk, and time an article.

Knows record layouts and measured overheads; knows nothing of recall.

The constants were measured by `make bench-plan` on one core of a two-core virtual machine with an SSD, on an index of a
million entries after compaction; they are what an article costs there, not a promise for another machine.
"""

from dataclasses import dataclass
from math import log2

from stream_dedup.fingerprint.features import landmark_rule
from stream_dedup.fingerprint.sketch import VALUE_BITS, landmark_count
from stream_dedup.index.entries.codec import HASH_BITS, MARK_BITS
from stream_dedup.index.lookup.plan import TablePlan
from stream_dedup.planner.lists import TYPICAL_GRAMS, others_of, packed, runs_of, tables_of
from stream_dedup.settings import Settings

# Windows that are on disk just before a generation expires; on average it is an eighth less.
HELD_WINDOWS = 2.0
# RocksDB writes out what has gathered in write buffers when the log behind them has this size.
_WRITE_BUFFERS = 256e6

TYPICAL_NUMBERS, TYPICAL_PLACES = 9, 4  # in its sketches
TYPICAL_NAME = 24  # bytes of an article's id
# Bytes in a family's files, after compression and what neighbouring keys share, with filters of 10 bits a key.
_FIGURES_BYTES = 36  # of an entry: hashes, times, sizes
_ENTRY_BYTES = 21  # of an entry's key, and what RocksDB adds
_RECORD_BYTES = 75  # of an article's record and its URL's, of real names and sources
_PROCESS = 420e6  # dictionaries, compiled loops, counts of words, a batch, and the postings that no run holds yet

_ARTICLE_US = 10.0  # whatever is asked
_PROBE_US = 0.05  # a key computed
_ASK_US = 0.035  # and asked of the filter of one run
_KEY_US = 0.5  # a key looked up in all runs
_BLOCK_US = 1.5  # a block read
_POSTING_US = 0.1  # a posting read and its distance taken
_ENTRY_US = 10.0  # an entry read, mostly not in the block cache, and compared
_INSERT_US = 0.65  # a posting written, its merges included
# What a core costs that judges an article in 450 us is what 8 GB of memory cost, or 250 GB of disk.
_US_PER_MEMORY_GB = 450 / 8
_US_PER_DISK_GB = 450 / 250


@dataclass(frozen=True, slots=True)
class Traffic:
    """What is to be indexed.

    Attributes:
        articles: in a window.
        indexed_share: of them that are indexed: canonical articles and drifted variants.
        reserve_share: of them whose entry is kept in reserve: a copy of each cluster, on disk alone.
    """

    articles: float
    indexed_share: float
    reserve_share: float = 0.0

    @property
    def entries(self) -> float:
        """Entries that are held in the index at most."""
        return HELD_WINDOWS * self.articles * self.indexed_share

    @property
    def kept(self) -> float:
        """Entries that are on disk at most."""
        return HELD_WINDOWS * self.articles * (self.indexed_share + self.reserve_share)


@dataclass(frozen=True, slots=True)
class Space:
    """Bytes of an index.

    Attributes:
        filters: in memory, of the SimHash tables.
        lists: in memory, filters and fences of all posting lists.
        memory: of the process: lists, block cache, write buffers and all else.
        tables: on disk, of the SimHash tables.
        disk: of all runs and families, without the log, which RocksDB bounds at 256 MB.
    """

    filters: float
    lists: float
    memory: float
    tables: float
    disk: float


def space_of(plan: TablePlan | None, traffic: Traffic, settings: Settings) -> Space:
    """Return what an index takes.

    Args:
        plan: the tables; None for an index without them.
        traffic: what is to be indexed.
        settings: of sketches, landmarks and the block cache.
    """
    runs = runs_of(traffic.entries)
    tables = [(packed(tables_of(plan, settings), size), count) for size, count in runs] if plan else []
    others = [(packed(lists, size), count) for lists in others_of(settings) for size, count in runs]
    in_memory = sum(part.memory * count for part, count in (*tables, *others))
    on_disk = sum(part.disk * count for part, count in (*tables, *others))
    records = HELD_WINDOWS * traffic.articles * _RECORD_BYTES
    return Space(
        sum(part.filter * count for part, count in tables),
        in_memory,
        in_memory + settings.state.cache_bytes + _WRITE_BUFFERS + _PROCESS,
        sum(part.disk * count for part, count in tables),
        on_disk + records + traffic.kept * (entry_bytes(settings) + _ENTRY_BYTES),
    )


def microseconds(
    tables: int, probes: float, runs: int, keys: float, blocks: float, postings: float, candidates: float
) -> float:
    """Return the time that the SimHash tables take of a new article, on one core.

    Args:
        tables: T.
        probes: keys tried, in all tables.
        runs: that there are.
        keys: looked up.
        blocks: of runs, read.
        postings: read.
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
    """Return time, memory and disk as one figure in microseconds an article, by what they cost to rent."""
    return time_us + space.memory / 1e9 * _US_PER_MEMORY_GB + space.disk / 1e9 * _US_PER_DISK_GB


def entry_bytes(settings: Settings) -> float:
    """Return the bytes of a typical article's entry, as it is packed, name included; see `EntryFormat.pack`."""
    sketch = settings.sketch
    bits = (
        _sketch_bits(VALUE_BITS, sketch.size, TYPICAL_GRAMS)
        + _sketch_bits(HASH_BITS, sketch.numbers, TYPICAL_NUMBERS)
        + _sketch_bits(HASH_BITS, sketch.places, TYPICAL_PLACES)
        + landmark_count(TYPICAL_GRAMS, landmark_rule(settings)) * MARK_BITS
    )
    return bits / 8 + _FIGURES_BYTES + TYPICAL_NAME


def _sketch_bits(bits: int, most: int, size: int) -> float:
    """Return the bits of a sketch of a set: of each gap those of the mean, and 1.5; see `index.entries.bits`."""
    return min(most, size) * (bits - log2(size) + 1.5)
