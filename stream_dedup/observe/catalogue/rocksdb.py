"""Metrics of the store beneath the state, and of its disk.

Knows families, caches and compaction; knows nothing of where values come from.
"""

from stream_dedup.index.stores.store import Family
from stream_dedup.observe.metric import Label, counter, gauge


class RocksDb:
    """RocksDB: the store beneath the state, and its disk."""

    state_disk_free_bytes = gauge(
        "bytes",
        "Free space of the file system with the state.",
        "Below a fifth of the size: make room. When the disk is full the process ends with exit code 1; nothing is "
        "lost.",
    )
    state_disk_size_bytes = gauge(
        "bytes", "Size of the file system with the state.", "Changes: another disk is mounted under `state.directory`."
    )
    rocksdb_live_bytes = gauge(
        "bytes",
        "Live files of a column family. Data that is only in write buffers or in the write-ahead log is not included.",
        "Grows with the entries and stays constant after one and a half windows. If not: is expired space reclaimed? "
        "See `space_not_reclaimed` in the log.",
        Label("family", tuple(Family)),
    )
    rocksdb_memory_bytes = gauge(
        "bytes",
        "Memory of write buffers, block cache, and what table readers keep outside the cache.",
        "The cache grows to `state.cache_bytes` and stays there; write buffers grow to twice "
        "`state.write_buffer_bytes` per family.",
        Label("part", ("memtables", "block_cache", "table_readers")),
    )
    rocksdb_block_cache_hits = counter(
        "blocks",
        "Blocks found in the block cache.",
        "See `rocksdb_block_cache_misses_total`.",
    )
    rocksdb_block_cache_misses = counter(
        "blocks",
        "Blocks read from files because they were not in the block cache.",
        "Their share of hits and misses grows, and `look_up` with it: raise `state.cache_bytes`.",
    )
    rocksdb_pending_compaction_bytes = gauge(
        "bytes",
        "Bytes that compaction still has to rewrite, as estimated by RocksDB.",
        "Grows for hours: the disk is too slow for the writes, which will eventually stop.",
    )
    rocksdb_running_compactions = gauge(
        "compactions", "Compactions in progress.", "Never 0: see `rocksdb_pending_compaction_bytes`."
    )
    rocksdb_running_flushes = gauge(
        "flushes", "Write buffers being flushed.", "Never 0: the disk is slow; see `commit_seconds`."
    )
    rocksdb_write_stopped = gauge(
        "0 or 1",
        "1 while compaction or flushing of write buffers stops or slows down writes.",
        "1: commits wait. Often: use a faster disk, or larger write buffers (`state.write_buffer_bytes`).",
    )
