"""How RocksDB is doing, by its own properties and statistics.

Knows their names; knows nothing of what is stored.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rocksdict import Rdict


@dataclass(frozen=True, slots=True)
class Figures:
    """How RocksDB is doing.

    Attributes:
        cache_bytes: bytes in the block cache.
        cache_hits: blocks found in the cache since opening.
        cache_misses: blocks read from files since opening.
        memtable_bytes: bytes written and not yet in files.
        table_reader_bytes: bytes of indexes and filters of open files that are not in the block cache.
        pending_compaction_bytes: what compaction has yet to rewrite, as RocksDB estimates it.
        running_compactions: how many compactions are under way.
        running_flushes: how many write buffers are being written out.
        writes_delayed: whether compaction has fallen behind, and writes wait for it.
    """

    cache_bytes: int
    cache_hits: int
    cache_misses: int
    memtable_bytes: int
    table_reader_bytes: int
    pending_compaction_bytes: int
    running_compactions: int
    running_flushes: int
    writes_delayed: bool


def figures_of(database: Rdict, families: Sequence[Rdict]) -> Figures:
    """Return how a database and its families are doing."""
    hits, misses = _cache_counts(database)
    return Figures(
        cache_bytes=figure("block-cache-usage", database),
        cache_hits=hits,
        cache_misses=misses,
        memtable_bytes=_total("cur-size-all-mem-tables", families),
        table_reader_bytes=_total("estimate-table-readers-mem", families),
        pending_compaction_bytes=_total("estimate-pending-compaction-bytes", families),
        running_compactions=figure("num-running-compactions", database),
        running_flushes=figure("num-running-flushes", database),
        writes_delayed=any(figure(name, database) for name in ("is-write-stopped", "actual-delayed-write-rate")),
    )


def figure(name: str, database: Rdict) -> int:
    """Return a property of a family, or of the database if it is one of the database's; 0 if RocksDB has none."""
    return database.property_int_value(f"rocksdb.{name}") or 0


def _total(name: str, families: Sequence[Rdict]) -> int:
    return sum(figure(name, family) for family in families)


def _cache_counts(database: Rdict) -> tuple[int, int]:
    statistics = database.property_value("rocksdb.options-statistics") or ""
    counts = dict(re.findall(r"^rocksdb\.block\.cache\.(hit|miss) COUNT : (\d+)", statistics, re.MULTILINE))
    return int(counts.get("hit", 0)), int(counts.get("miss", 0))
