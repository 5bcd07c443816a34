"""How RocksDB is set up for each family of the state, and why.

Knows RocksDB's options; knows nothing of who reads or writes.
"""

from collections.abc import Mapping
from pathlib import Path

from rocksdict import (
    AccessType,
    BlockBasedOptions,
    Cache,
    DBCompressionType,
    DBRecoveryMode,
    MemtableFactory,
    Options,
    ReadOptions,
    SliceTransform,
    WriteOptions,
)

from stream_dedup.index.stores.store import Family

# Many similar values: in blocks of four times RocksDB's default size they compress to a tenth less.
_RECORDS = frozenset({Family.ARTICLES, Family.CLUSTERS, Family.MEMBERS, Family.URLS})
_RECORDS_BLOCK = 16 << 10
# Hash buckets of a followed database for the keys since its last log began, and how many bytes of a key are hashed.
_FOLLOWED_BUCKETS, _FOLLOWED_PREFIX = 1 << 16, 128


def options_of(
    cache_bytes: int, write_buffer_bytes: int, *, read_only: bool, follows: bool
) -> Mapping[Family, Options]:
    """Return the options of each family.

    Args:
        cache_bytes: size of the block cache, shared by all families.
        write_buffer_bytes: size of each write buffer.
        read_only: whether the database is only read, so that another process may write it meanwhile.
        follows: whether what is written meanwhile is read too.
    """
    cache = Cache(cache_bytes)
    options = {family: _options(cache, write_buffer_bytes, family) for family in Family}
    if read_only:
        for chosen in options.values():
            # A file that the writer removes stays readable for those that have it open.
            chosen.set_max_open_files(-1)
    if follows:
        for family, chosen in options.items():
            _follow(chosen, family)
    return options


def write_options(*, sync: bool) -> WriteOptions:
    """Return the options of writes; with `sync`, each write waits for the disk."""
    options = WriteOptions()
    options.sync = sync
    # RocksDB would wait with the GIL held: 0.3 s for compaction, and for as long as a full disk has no space.
    options.no_slowdown = True
    # Otherwise, a write that names a family which no longer exists would be applied in part.
    options.ignore_missing_column_families = True
    return options


def all_in_order() -> ReadOptions:
    """Return the options of an iterator that visits all keys of a family in order, however they are kept."""
    options = ReadOptions()
    options.set_total_order_seek(True)
    return options


def access_of(*, read_only: bool, follow: Path | None) -> AccessType:
    """Return how the database is opened; see `RocksStore`."""
    if follow is not None:
        return AccessType.secondary(str(follow))
    return AccessType.read_only() if read_only else AccessType.read_write()


def _options(cache: Cache, write_buffer_bytes: int, family: Family) -> Options:
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_block_based_table_factory(_table(cache, family))
    options.set_compression_type(_compression(family))
    options.set_write_buffer_size(write_buffer_bytes)
    options.set_max_write_buffer_number(2)
    # Most look-ups are for absent keys, and need not search the write buffer for them either.
    options.set_memtable_whole_key_filtering(True)
    options.set_memtable_prefix_bloom_ratio(0.1)
    options.set_max_background_jobs(2)
    options.set_max_open_files(512)
    options.set_max_total_wal_size(256 << 20)
    options.set_max_log_file_size(4 << 20)
    options.set_keep_log_file_num(4)
    # For the hits and misses of the cache; the cost is within the noise of a look-up.
    options.enable_statistics()
    # A torn end of the log is a write that was never acknowledged; damage before it must be reported.
    options.set_wal_recovery_mode(DBRecoveryMode.tolerate_corrupted_tail_records())
    return options


def _follow(options: Options, family: Family) -> None:
    """Set the options of a follower: it writes each key again as soon as the writer has, and few are ever looked up.

    Keeping the keys of each family in order took half of the time, or 2 of 5 us per article. So keys of articles, which
    arrive in no order, are hashed, and keys of URLs, which nobody asks a follower for, are appended as they arrive, and
    only sorted if they are asked for after all.
    """
    # Otherwise each catch-up starts fifteen threads for each family, which takes longer than most catch-ups themselves.
    options.set_max_file_opening_threads(1)
    # Filters would cost more than they save.
    options.set_memtable_whole_key_filtering(False)
    options.set_memtable_prefix_bloom_ratio(0.0)
    options.set_allow_concurrent_memtable_write(False)
    if family is Family.ARTICLES:
        # rocksdict's stub forgets that it is static.
        factory = MemtableFactory.hash_link_list(_FOLLOWED_BUCKETS)  # type: ignore[call-arg]
        options.set_memtable_factory(factory)
        options.set_prefix_extractor(SliceTransform.create_max_len_prefix(_FOLLOWED_PREFIX))
    if family is Family.URLS:
        options.set_memtable_factory(MemtableFactory.vector())


def _table(cache: Cache, family: Family) -> BlockBasedOptions:
    table = BlockBasedOptions()
    table.set_block_cache(cache)
    table.set_bloom_filter(10, block_based=False)
    if family in _RECORDS:
        table.set_block_size(_RECORDS_BLOCK)
    table.set_cache_index_and_filter_blocks(True)
    return table


def _compression(family: Family) -> DBCompressionType:
    """Return how the blocks of a family are compressed.

    Entries are packed already: LZ4 takes only 0.2% off them. Records, clusters and counts are full of text and times
    and are seldom read; zstd takes a third more off them than LZ4.
    """
    return DBCompressionType.none() if family is Family.ENTRIES else DBCompressionType.zstd()
