"""Metrics of the index: what is stored.

Knows entries, the window and posting lists; knows nothing of where values come from.
"""

from stream_dedup.observe.metric import counter, gauge


class Index:
    """Index: what is remembered, over which time, and the files of posting lists."""

    index_entries = gauge(
        "entries",
        "Entries of the stored generations, including those in reserve and those removed since.",
        "Grows although the stream does not: the window no longer moves, see `stream_time_seconds`.",
    )
    state_articles_judged = gauge(
        "articles",
        "Articles judged since the state was created.",
        "Falls: another state is open, one that was restored or rebuilt.",
    )
    stream_time_seconds = gauge(
        "seconds",
        "Stream time: that of the newest article so far, in seconds since 1970 in UTC.",
        "Does not move: no new articles, or all are late. Ahead of the clock: a producer's clock is wrong.",
    )
    window_generations = gauge(
        "generations",
        "Number of parts (generations) of the window that are stored.",
        "Usually three. One, although more than half a window has passed: the stream's time does not move.",
    )
    window_span_seconds = gauge(
        "seconds",
        "Time from the start of the oldest stored generation to the stream's time.",
        "One to one and a half windows (`window.days`) once that much time has passed. Less after a "
        "restart: the state was lost, and copies of older articles are not found.",
    )
    index_runs = gauge(
        "files",
        "Number of files with posting lists.",
        "Usually fewer than ten. Many more: merging falls behind. Does the process have a second core?",
    )
    index_run_bytes = gauge(
        "bytes",
        "Size of the files with posting lists.",
        "Should fit into the page cache: if memory is smaller, `look_up` waits for the disk.",
    )
    index_blocks_read = counter(
        "blocks",
        "Posting-list blocks read from these files.",
        "Blocks per article grow with the index, and `look_up` with them.",
    )
