"""All metrics of the service by theme: names, units, labels, what they mean and what to do when they move.

Knows nothing of where values come from. deploy/metrics.md is made of this (`make metrics-page`).
"""

from dataclasses import dataclass

from stream_dedup.article import Relation, Source
from stream_dedup.decode import Reason
from stream_dedup.engine.shadow import Disagreement
from stream_dedup.index.stores.store import Family
from stream_dedup.observe.metric import Label, counter, gauge, histogram, info

_DECISION_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600, 3600)
_COMMIT_MESSAGES = (1, 4, 16, 64, 128, 256, 512, 1024, 2048, 4096)
_COMMIT_BYTES = tuple(4**power * 1024.0 for power in range(10))  # 1 KiB to 256 MiB
_COMMIT_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30)
_DRIFT_BITS = (0, 1, 2, 3, 4, 6, 8, 12, 16)

_TOPIC = Label("topic", bound="the topics that `input.topics` matches")
_PARTITION = Label("partition", bound="the partitions that this process reads")
_DECISION = Label("decision", ("unique", "duplicate"))
_RELATION = Label("relation", ("none", *Relation))
_SOURCE = Label("source", (Source.CONTENT, Source.LANDMARK, Source.SIMHASH))
_LISTS = Label("source", (Source.LANDMARK, Source.SIMHASH))
_CLIENT = Label("client", ("consumer", "producer", "changelog"))
_STAGES = (
    *("decode", "features", "await", "simhash", "look_up", "judge", "change"),
    *("produce", "transaction", "apply", "shadow"),
)


class Rate:
    """Rate: what comes in, what becomes of it, and how long that takes."""

    articles = counter(
        "articles",
        "Articles judged, by input topic, decision and relation.",
        "Rate falls while the lag grows: compare `stage_seconds_total`. Share of duplicates jumps: a feed repeats "
        "itself, or a template is not filtered out; `topic` shows which feed.",
        _TOPIC,
        _DECISION,
        _RELATION,
    )
    decision_seconds = histogram(
        "seconds",
        "Time from a message's timestamp to its committed decision.",
        "Grows with the lag, because it includes the time that messages wait in Kafka. Grows without lag: see "
        "`commit_seconds`, or a producer's clock is slow.",
        _DECISION_SECONDS,
    )
    stage_seconds = counter(
        "seconds",
        "Time by stage: decode and features, in which the next batch is prepared during a commit; await (waiting for "
        "these), simhash, look_up, judge, change, produce, transaction, apply, shadow. Stages overlap, so their sum "
        "exceeds the elapsed time.",
        "Shows where the time goes. `await` waits for `decode` and `features`, which are CPU; `look_up` and `apply` "
        "are the index and its disk; `produce` and `transaction` are the broker.",
        Label("stage", _STAGES),
    )
    commit_seconds = histogram(
        "seconds",
        "Time from the first output of a commit until the state is written.",
        "Grows: the broker (`kafka_round_trip_seconds`) or the disk (`rocksdb_write_stopped`) is slow.",
        _COMMIT_SECONDS,
    )
    commit_messages = histogram(
        "messages",
        "Messages per commit.",
        "At `commit.articles` while catching up, small when idle. Always large: the service is at its limit.",
        _COMMIT_MESSAGES,
    )
    commit_bytes = histogram(
        "bytes",
        "Bytes of the messages per commit, as they came.",
        "At `commit.bytes` with few messages: articles are larger than usual, and size limits the commits.",
        _COMMIT_BYTES,
    )
    transactions = counter(
        "transactions",
        "Commits, by outcome.",
        "Aborted: nothing is lost, the same messages are decided again. The log has the reason: a broker restart or a "
        "rebalance. If it lasts longer than `commit.deadline_seconds`, the process ends with exit code 1.",
        Label("outcome", ("committed", "aborted")),
    )
    withdrawals = counter(
        "articles", "Articles withdrawn.", "Jumps: a source withdraws many articles at once. Is that intended?"
    )
    successions = counter(
        "clusters",
        "Clusters whose canonical article was replaced.",
        "Many more than withdrawals: the article that `cluster.canonical` prefers often arrives late.",
    )
    articles_silent = counter(
        "articles",
        "Articles that the group had already decided, judged again only to add them to the state.",
        "Grows: the state and its changelog were lost, or the settings have changed. Nothing is published until it "
        "stops growing.",
    )


class Lag:
    """Lag: how far the service is behind its input, and its state behind the changelog."""

    consumer_lag_messages = gauge(
        "messages",
        "Messages of a partition that are not yet committed.",
        "Grows: compare the stages. Has the input rate risen, or has the service become slower?",
        _TOPIC,
        _PARTITION,
    )
    consumer_lag_seconds = gauge(
        "seconds",
        "How long the oldest uncommitted message of a partition has been waiting. Measured by its own timestamp once "
        "it was read, before that by the timestamp of the last committed message. 0 if none is waiting; absent until "
        "known.",
        "Higher than consumers of the outputs can accept: as for `consumer_lag_messages`. Jumps for a single "
        "partition: its producers set old timestamps.",
        _TOPIC,
        _PARTITION,
    )
    changelog_position = gauge(
        "records",
        "Changelog offset up to which the state has been written.",
        "Does not move on the active process while articles are judged: no commits, see `transactions_total`. On a "
        "standby it follows the active process.",
    )
    changelog_records_remaining = gauge(
        "records",
        "Changelog records that the state has not yet applied.",
        "During a restore, shows what is left. Grows on a standby: its disk or CPU is too slow.",
    )


class Errors:
    """Errors: what went wrong, and what the service is waiting for."""

    dead_letters = counter(
        "messages",
        "Messages that could not be judged, by reason.",
        "See [dead letters](README.md#dead-letters) for what to do about each reason. `internal` is a fault of the "
        "service.",
        Label("reason", tuple(Reason)),
    )
    rebalances = counter(
        "rebalances",
        "How often input partitions were assigned or revoked.",
        "Often: `input.group` has other members, or a process does not poll in time (`heartbeat_age_seconds`).",
    )
    registry_waiting = gauge(
        "0 or 1",
        "1 while waiting for the schema registry.",
        "1: messages wait for a schema, nothing is lost; `registry_out_of_reach` in the log has the registry's answer.",
    )
    heartbeat_age_seconds = gauge(
        "seconds",
        "Time since the poll loop last ran.",
        "More than a few seconds: a slow disk, or a machine short of CPU. At `http.stuck_seconds` `/healthz` fails.",
    )
    stack_dumps = counter(
        "dumps",
        "How often the stacks of all threads were logged: the loop was stuck, or SIGUSR1 was sent.",
        "Grows: the stacks in the log event `loop_stuck` show where the loop was stuck.",
    )


class Detection:
    """Detection: how copies are found, and how well the weights fit the stream."""

    matches = counter(
        "links",
        "Links, by the index that found the matched article.",
        "A source disappears: its index is off, or its lists are full (`hot_keys_total`).",
        Label("source", tuple(Source)),
    )
    candidates = counter(
        "candidates",
        "Candidates verified, by the index that found them first.",
        "Many per article, few confirmed: boilerplate fills the lists. Each candidate costs time in `judge` and "
        "`look_up`.",
        _SOURCE,
    )
    candidates_confirmed = counter(
        "candidates",
        "Candidates that matched, by the index that found them first.",
        "Share of the candidates falls: thresholds or texts have changed.",
        _SOURCE,
    )
    simhash_probes = counter(
        "keys",
        "SimHash table keys looked up: the articles' own keys and those some bit flips away.",
        "An article that the other indexes prove to be a copy looks up none. Fewer per article: more copies are found "
        "earlier.",
    )
    simhash_hits = counter(
        "keys",
        "SimHash table keys looked up for which the index had articles.",
        "Share of the probes grows with the index, up to the tables' occupancy. It jumps: many similar fingerprints, "
        "for example from a template. The time of `look_up` grows with it: see `simhash.prefix_bits`.",
    )
    hot_keys = counter(
        "keys",
        "Landmarks and SimHash keys looked up whose lists are full (`landmarks.cap`, `simhash.bucket_cap`), so that "
        "older articles under them are not seen.",
        "Grows faster than the articles: a template or a site's footer floods the index. The caps bound an article's "
        "cost, but copies may be missed.",
        _LISTS,
    )
    longest_list_articles = gauge(
        "articles",
        "Articles under the fullest key looked up in the last commit.",
        "Near the cap: `hot_keys_total` grows next.",
        _LISTS,
    )
    articles_stripped = counter(
        "articles",
        "Articles from which learnt lines of their site were removed.",
        "A site's stories appear as copies of each other: its lines will be learnt at the end of the epoch.",
    )
    learnt_lines = gauge(
        "lines",
        "Lines known to surround a site's articles, as of the start of the current epoch.",
        "None after several epochs: do the articles have a source or a URL?",
    )
    idf_epoch = gauge(
        "number",
        "Current IDF epoch.",
        "Each change may move fingerprints: see the drift.",
    )
    idf_vocabulary_words = gauge(
        "words",
        "Number of words counted.",
        "Jumps: another language, or input that is not text. Each word takes some memory.",
    )
    epoch_drift_distance = histogram(
        "bits",
        "Hamming distance by which the fingerprints of the newest unique articles (up to 128) moved at the start of "
        "an epoch; one observation per article.",
        "See `epoch_drift_mean_distance`.",
        _DRIFT_BITS,
    )
    epoch_drift_mean_distance = gauge(
        "bits",
        "Mean of that distance in the last epoch measured (an epoch is not measured if no unique article has arrived "
        "since the process started).",
        "Over 2 after the first epochs: the stream has changed, or `idf.epoch_articles` is too small. SimHash finds "
        "fewer copies of older articles until these have left the window; landmarks find them as before.",
    )
    epoch_drift_articles = gauge(
        "articles",
        "Articles whose fingerprints were compared in the last epoch measured.",
        "Few: the mean is not meaningful.",
    )
    shadow_articles = counter(
        "articles",
        "Articles that the shadow judged as well, by kind of disagreement.",
        "Shows what the other thresholds would change: see [trying other "
        "thresholds](README.md#trying-other-thresholds).",
        Label("disagreement", ("none", *Disagreement)),
    )
    shadow_left_out = counter(
        "messages",
        "Disagreements that were not sent because the broker accepted no more.",
        "Grows: lower `shadow.sample`; all are counted in `shadow_articles_total`.",
    )
    shadow_enabled = gauge(
        "0 or 1",
        "1 if the settings enable the shadow (`shadow.enabled`).",
        "Changes only with the settings.",
    )
    shadow_running = gauge(
        "0 or 1",
        "1 while the shadow judges.",
        "0 although enabled: `shadow_ended` in the log has the reason; a restart starts it over.",
    )


class Index:
    """Index: what is remembered, over which time, and the files of posting lists."""

    index_entries = gauge(
        "entries",
        "Entries stored, including those in reserve and those that have not expired yet.",
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
        "Usually three or four. One, although more than half a window has passed: the stream's time does not move.",
    )
    window_span_seconds = gauge(
        "seconds",
        "Time from the start of the oldest stored generation to the stream's time.",
        "Up to two windows (`window.days`); one and a half to two once that much time has passed. Less after a "
        "restart: the state was lost, and copies of older articles are not found.",
    )
    index_runs = gauge(
        "files",
        "Number of files with posting lists.",
        "Usually a dozen. Many more: merging falls behind. Does the process have a second core?",
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
        "Grows with the entries and stays constant after two windows. If not: is expired space reclaimed? See "
        "`space_not_reclaimed` in the log.",
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


class KafkaClient:
    """Kafka clients: librdkafka's connection statistics, every `kafka.statistics.interval.ms` (10 s; 0: off)."""

    kafka_connected_brokers = gauge(
        "brokers",
        "Brokers to which a client is connected.",
        "0: the cluster is unreachable. Fewer than the cluster has is normal: a client connects only to those it "
        "needs.",
        _CLIENT,
    )
    kafka_round_trip_seconds = gauge(
        "seconds",
        "Time from a request to its response, since the last statistics; absent for a client that sent no request. A "
        "consumer with nothing to read waits at the broker for up to `fetch.wait.max.ms`, which is included.",
        "Grows for the producer: the broker is slow, distant or busy; `commit_seconds` grows with it.",
        _CLIENT,
        Label("stat", ("mean", "p99")),
    )
    kafka_request_timeouts = counter(
        "requests",
        "Requests that timed out.",
        "Grows: a broker is overloaded or down, or the network drops packets.",
        _CLIENT,
    )
    kafka_transmission_errors = counter(
        "errors",
        "Requests that could not be sent, and responses that could not be received.",
        "Grows: connections break; `kafka_client` in the log has librdkafka's words.",
        _CLIENT,
    )
    kafka_received_bytes = counter(
        "bytes",
        "Bytes of brokers' responses, as compressed on the wire.",
        "For the consumer: the input's traffic. For the changelog: how fast a state is restored.",
        _CLIENT,
    )
    kafka_sent_bytes = counter(
        "bytes",
        "Bytes of requests to brokers, as compressed on the wire.",
        "For the producer: outputs and changelog.",
        _CLIENT,
    )
    kafka_producer_queue_messages = gauge(
        "messages",
        "Producer messages that no broker has confirmed yet.",
        "Stays high: the broker accepts less than is sent, and reading slows down with it.",
    )
    kafka_producer_queue_bytes = gauge(
        "bytes",
        "Bytes of producer messages that no broker has confirmed yet.",
        "At `kafka.producer.queue.buffering.max.kbytes`: as for `kafka_producer_queue_messages`.",
    )
    kafka_fetch_queue_messages = gauge(
        "messages",
        "Messages that the consumer has fetched and the service has not read yet, including a few events.",
        "0 while the lag grows: the network or the broker is the limit. High: the service is.",
    )


class Process:
    """Process: the role, health and resource use of the process."""

    build = info(
        "Version of the service.",
        "Differs between replicas: a new version is being rolled out.",
        Label("version", bound="one per process"),
    )
    role = gauge(
        "0 or 1",
        "1 for the process's current role.",
        "No process is active: look at the logs of all. Restoring for long (replaying the changelog, or silently "
        "judging what the group has decided): `/readyz` says how much is left.",
        Label("role", ("restoring", "standby", "active")),
    )
    ready = gauge(
        "0 or 1", "1 while the process reads its input.", "0 on the active process: `/readyz` says what it waits for."
    )
    assigned_partitions = gauge(
        "partitions",
        "Input partitions that the process reads.",
        "On the active process, fewer than exist: another member has joined `input.group`.",
    )
    memory_bytes = gauge(
        "bytes",
        "Memory in use, by kind: anonymous is the process's own, file is mapped files, which the system can reclaim.",
        "Anonymous memory grows for days: report it, with the other memory figures. File memory grows with "
        "`index_run_bytes` and is harmless.",
        Label("kind", ("anonymous", "file")),
    )
    memory_limit_bytes = gauge(
        "bytes",
        "Memory limit of the process's cgroup, such as a container's; 0 if there is none.",
        "When the process's own memory reaches the limit, it is killed. Near the limit: raise it, or use smaller "
        "caches (`state.cache_bytes`, `state.write_buffer_bytes`).",
    )


@dataclass(frozen=True, slots=True)
class Foreign:
    """A metric that Prometheus' client brings.

    Attributes:
        name: as it is shown.
        kind: of metric.
        unit: of the values.
        meaning: what they are.
        action: what to do when they move.
        labels: in order.
    """

    name: str
    kind: str
    unit: str
    meaning: str
    action: str
    labels: tuple[Label, ...] = ()


FOREIGN = (
    Foreign(
        "process_resident_memory_bytes",
        "gauge",
        "bytes",
        "Memory in use, of all kinds.",
        "Near the limit of the machine or container: the process would be killed; see `memory_bytes`.",
    ),
    Foreign(
        "process_virtual_memory_bytes",
        "gauge",
        "bytes",
        "Address space, including mapped files.",
        "Nothing: it is not meaningful.",
    ),
    Foreign(
        "process_cpu_seconds_total",
        "counter",
        "seconds",
        "CPU time of all threads.",
        "Its rate is the number of cores in use. Near the machine's total: the lag grows next.",
    ),
    Foreign(
        "process_start_time_seconds",
        "gauge",
        "seconds",
        "Start time of the process, in seconds since 1970 in UTC.",
        "Changes: the process was restarted; the previous process's log has the reason.",
    ),
    Foreign("process_open_fds", "gauge", "files", "Open files.", "Near the limit: raise it (`ulimit -n`)."),
    Foreign("process_max_fds", "gauge", "files", "Limit of open files.", "Below 4,096: raise it."),
    Foreign(
        "python_info",
        "gauge",
        "",
        "Version of Python.",
        "As for `build_info`.",
        tuple(
            Label(name, bound="one per process")
            for name in ("implementation", "major", "minor", "patchlevel", "version")
        ),
    ),
)
