"""What RocksDB and the disk below it report about the state, as metrics.

Knows which figure is which metric; knows nothing of what the state holds.
"""

import shutil
from contextlib import suppress
from pathlib import Path

from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.observe.metrics import Metrics


class StateMeter:
    """Updates the metrics of a store at each `refresh`, which takes about a millisecond and may run in any thread.

    Args:
        metrics: the metrics to update.
        store: where the figures come from; must stay open as long as it is asked.
        directory: of the store.
    """

    def __init__(self, metrics: Metrics, store: RocksStore, directory: Path) -> None:
        self._metrics = metrics
        self._store = store
        self._directory = directory
        self._hits = self._misses = 0  # counted so far

    def refresh(self) -> None:
        """Bring the metrics up to date."""
        metrics, figures = self._metrics, self._store.figures()
        for family, size in self._store.sizes().items():
            metrics.rocksdb_live_bytes.labels(family).set(size)
        metrics.rocksdb_memory_bytes.labels("memtables").set(figures.memtable_bytes)
        metrics.rocksdb_memory_bytes.labels("block_cache").set(figures.cache_bytes)
        metrics.rocksdb_memory_bytes.labels("table_readers").set(figures.table_reader_bytes)
        metrics.rocksdb_block_cache_hits.inc(figures.cache_hits - self._hits)
        metrics.rocksdb_block_cache_misses.inc(figures.cache_misses - self._misses)
        self._hits, self._misses = figures.cache_hits, figures.cache_misses
        metrics.rocksdb_pending_compaction_bytes.set(figures.pending_compaction_bytes)
        metrics.rocksdb_running_compactions.set(figures.running_compactions)
        metrics.rocksdb_running_flushes.set(figures.running_flushes)
        metrics.rocksdb_write_stopped.set(figures.writes_delayed)
        # A disk that is gone is noticed at the next write.
        with suppress(OSError):
            disk = shutil.disk_usage(self._directory)
            metrics.state_disk_free_bytes.set(disk.free)
            metrics.state_disk_size_bytes.set(disk.total)
