"""The dashboard of the index and the store under it: what is remembered, how it is found again, the disk.

Knows queries and panels; knows nothing of Grafana's files.
"""

from deploy.dashboards.frame import Page, Section
from deploy.dashboards.panels import BLUE, GREEN, RED, YELLOW, lines, number
from deploy.dashboards.queries import Series

_ARTICLES = "sum by (instance) (rate(stream_dedup_articles_total{$of}[$__rate_interval]))"
_FREE = "stream_dedup_state_disk_free_bytes{$of} / stream_dedup_state_disk_size_bytes{$of}"
_STAGES = ("look_up", "judge", "change", "apply")


def _an_article(metric: str) -> str:
    return f"sum by (instance) (rate({metric}{{$of}}[$__rate_interval])) / {_ARTICLES}"


_NOW = Section(
    "Now",
    [
        number("Entries", Series("max(stream_dedup_index_entries{$of})"), unit="short", base=BLUE),
        number("Articles judged", Series("max(stream_dedup_state_articles_judged{$of})"), unit="short", base=BLUE),
        number("Time kept", Series("max(stream_dedup_window_span_seconds{$of})"), unit="s", base=BLUE),
        number("Generations", Series("max(stream_dedup_window_generations{$of})"), unit="none", base=BLUE),
        number("Runs", Series("max(stream_dedup_index_runs{$of})"), unit="none", limits=[(20, YELLOW), (40, RED)]),
        number(
            "Free disk",
            Series(f"min({_FREE})"),
            unit="percentunit",
            decimals=0,
            limits=[(0.03, YELLOW), (0.1, GREEN)],
            base=RED,
            about="For the process with the least.",
        ),
        number(
            "Block cache",
            Series(
                "sum(rate(stream_dedup_rocksdb_block_cache_hits_total{$of}[$__rate_interval]))"
                " / (sum(rate(stream_dedup_rocksdb_block_cache_hits_total{$of}[$__rate_interval]))"
                " + sum(rate(stream_dedup_rocksdb_block_cache_misses_total{$of}[$__rate_interval])))"
            ),
            unit="percentunit",
            decimals=1,
            base=BLUE,
            about="Share of block lookups served from the cache.",
        ),
        number(
            "Writes",
            Series("max(stream_dedup_rocksdb_write_stopped{$of})"),
            unit="none",
            limits=[(1, RED)],
            about="0: writes are not held up.",
        ),
    ],
)

_KEPT = Section(
    "What is remembered",
    [
        lines("Entries", Series("stream_dedup_index_entries{$of}", "{{instance}}"), unit="short"),
        lines("Time kept", Series("stream_dedup_window_span_seconds{$of}", "{{instance}}"), unit="s"),
        lines(
            "Stream time behind the clock",
            Series("time() - (stream_dedup_stream_time_seconds{$of} > 0)", "{{instance}}"),
            unit="s",
            least=None,
        ),
    ],
)

_FOUND = Section(
    "How it is found again",
    [
        lines("Runs of posting lists", Series("stream_dedup_index_runs{$of}", "{{instance}}"), unit="none"),
        lines("Size of the runs", Series("stream_dedup_index_run_bytes{$of}", "{{instance}}"), unit="bytes"),
        lines(
            "Blocks read per article",
            Series(_an_article("stream_dedup_index_blocks_read_total"), "{{instance}}"),
            unit="none",
        ),
        lines(
            "SimHash table keys per article",
            Series(_an_article("stream_dedup_simhash_probes_total"), "{{instance}} probes"),
            Series(_an_article("stream_dedup_simhash_hits_total"), "{{instance}} hits"),
            unit="none",
        ),
        lines(
            "Articles under the fullest key",
            Series("max by (source) (stream_dedup_longest_list_articles{$of})", "{{source}}"),
            unit="none",
        ),
        lines(
            "Index time per article",
            *(
                Series(
                    f'sum(rate(stream_dedup_stage_seconds_total{{$of, stage="{stage}"}}[$__rate_interval]))'
                    " / sum(rate(stream_dedup_articles_total{$of}[$__rate_interval]))",
                    stage,
                )
                for stage in _STAGES
            ),
            unit="s",
            stacked=True,
        ),
    ],
)

_STORE = Section(
    "RocksDB",
    [
        lines(
            "Live files by family",
            Series("max by (family) (stream_dedup_rocksdb_live_bytes{$of})", "{{family}}"),
            unit="bytes",
            stacked=True,
            about="For the largest process; a standby has the same.",
        ),
        lines(
            "Memory by part",
            Series("max by (part) (stream_dedup_rocksdb_memory_bytes{$of})", "{{part}}"),
            unit="bytes",
            stacked=True,
            about="For the largest process.",
        ),
        lines(
            "Share of blocks found in the cache",
            Series(
                "sum by (instance) (rate(stream_dedup_rocksdb_block_cache_hits_total{$of}[$__rate_interval]))"
                " / (sum by (instance) (rate(stream_dedup_rocksdb_block_cache_hits_total{$of}[$__rate_interval]))"
                " + sum by (instance) (rate(stream_dedup_rocksdb_block_cache_misses_total{$of}[$__rate_interval])))",
                "{{instance}}",
            ),
            unit="percentunit",
            most=1,
        ),
        lines(
            "Waiting to be compacted",
            Series("stream_dedup_rocksdb_pending_compaction_bytes{$of}", "{{instance}}"),
            unit="bytes",
        ),
        lines(
            "Compactions and flushes under way",
            Series("sum by (instance) (stream_dedup_rocksdb_running_compactions{$of})", "{{instance}} compactions"),
            Series("sum by (instance) (stream_dedup_rocksdb_running_flushes{$of})", "{{instance}} flushes"),
            unit="none",
        ),
        lines(
            "Writes stopped",
            Series("stream_dedup_rocksdb_write_stopped{$of}", "{{instance}}"),
            unit="none",
            most=1,
            limits=[(1, RED)],
        ),
    ],
)

_DISK = Section(
    "Disk and memory",
    [
        lines(
            "Free share of the disk",
            Series(_FREE, "{{instance}}"),
            unit="percentunit",
            most=1,
            limits=[(0.03, RED), (0.1, YELLOW)],
        ),
        lines(
            "Free bytes, now and in a day",
            Series("stream_dedup_state_disk_free_bytes{$of}", "{{instance}} now"),
            Series(
                "clamp_min(predict_linear(stream_dedup_state_disk_free_bytes{$of}[6h], 86400), 0)",
                "{{instance}} in a day",
            ),
            unit="bytes",
            about="If the trend of the last six hours continues.",
        ),
        lines("Memory", Series("stream_dedup_memory_bytes{$of}", "{{instance}} {{kind}}"), unit="bytes"),
    ],
)

INDEX = Page(
    "stream-dedup-index",
    "stream_dedup: index and RocksDB",
    "What is remembered, how it is looked up, the store beneath it and its disk.",
    [_NOW, _KEPT, _FOUND, _STORE, _DISK],
)
