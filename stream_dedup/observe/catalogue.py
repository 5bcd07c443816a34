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

_TOPIC = Label("topic", bound="the topics that `input.topics` takes in")
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
        "Articles judged, by the topic they came from, decision and relation.",
        "The rate falls while the lag grows: compare `stage_seconds_total`. The share of duplicates jumps: a feed "
        "repeats itself, or a template slips through; `topic` tells which feed.",
        _TOPIC,
        _DECISION,
        _RELATION,
    )
    decision_seconds = histogram(
        "seconds",
        "From a message's timestamp to its committed decision.",
        "Grows with the lag: it holds the time that messages wait in Kafka. Grows without one: `commit_seconds`, or "
        "producers whose clocks are slow.",
        _DECISION_SECONDS,
    )
    stage_seconds = counter(
        "seconds",
        "Time by stage: decode and features, which the next batch goes through while one is committed; await (that "
        "they are ready), simhash, look_up, judge, change, produce, transaction, apply, shadow. Stages overlap: they "
        "add up to more than the time that passes.",
        "Where the time goes. `await` waits for `decode` and `features`, which are CPU; `look_up` and `apply` are the "
        "index and its disk; `produce` and `transaction` the broker.",
        Label("stage", _STAGES),
    )
    commit_seconds = histogram(
        "seconds",
        "From the first output of a commit to the written state.",
        "Grows: a slow broker (`kafka_round_trip_seconds`) or disk (`rocksdb_write_stopped`).",
        _COMMIT_SECONDS,
    )
    commit_messages = histogram(
        "messages",
        "Messages of a commit.",
        "At `commit.articles` while catching up, small when idle. Large all the time: the service is at its limit.",
        _COMMIT_MESSAGES,
    )
    commit_bytes = histogram(
        "bytes",
        "Bytes of the messages of a commit, as they came.",
        "At `commit.bytes` with few messages: articles are larger than usual, and commits are cut by size.",
        _COMMIT_BYTES,
    )
    transactions = counter(
        "transactions",
        "Commits, by outcome.",
        "Aborted ones: nothing is lost, the same messages are decided again. The log says why: a broker that restarts, "
        "or a rebalance. For longer than `commit.deadline_seconds`: the process ends with exit code 1.",
        Label("outcome", ("committed", "aborted")),
    )
    withdrawals = counter("articles", "Articles withdrawn.", "Jumps: a source takes back much at once; is that meant?")
    successions = counter(
        "clusters",
        "Clusters that got another canonical article.",
        "Many more than withdrawals: a better one by `cluster.canonical` often comes late.",
    )
    articles_silent = counter(
        "articles",
        "Articles that the group had decided already, judged again only for the state to know them.",
        "It grows: the state and its changelog were lost, or the settings are new. Nothing is published until it "
        "stands still.",
    )


class Lag:
    """Lag: how far the service is behind its input, and its state behind the changelog."""

    consumer_lag_messages = gauge(
        "messages",
        "Messages of a partition that are not committed yet.",
        "Grows: compare the stages; is the rate of the input new, or is the service slower than it was?",
        _TOPIC,
        _PARTITION,
    )
    consumer_lag_seconds = gauge(
        "seconds",
        "How long the oldest message of a partition waits that is not committed yet: by its own timestamp once it was "
        "read, before that by the timestamp of the last one that was committed. 0 where none waits; not shown before "
        "it is known.",
        "Above what readers of the outputs can bear: as for messages. Jumps for one partition alone: its producers' "
        "timestamps are old.",
        _TOPIC,
        _PARTITION,
    )
    changelog_position = gauge(
        "records",
        "Offset of the changelog that the state stands at.",
        "Stands still on the active process while articles are judged: it does not commit, see `transactions_total`. "
        "On a standby it follows that of the active one.",
    )
    changelog_records_remaining = gauge(
        "records",
        "Records of the changelog that the state has yet to follow.",
        "While restoring it tells how far that is. A standby that falls behind: its disk or CPU.",
    )


class Errors:
    """Errors: what went wrong, and what is waited for."""

    dead_letters = counter(
        "messages",
        "Messages that could not be judged, by reason.",
        "See [dead letters](README.md#dead-letters): what to do about each reason. `internal` is a fault of the "
        "service.",
        Label("reason", tuple(Reason)),
    )
    rebalances = counter(
        "rebalances",
        "Times that input partitions were given or taken.",
        "Often: other members in `input.group`, or a process that does not poll in time (`heartbeat_age_seconds`).",
    )
    registry_waiting = gauge(
        "0 or 1",
        "1 while the schema registry is waited for.",
        "1: messages wait for a schema, nothing is lost; `registry_out_of_reach` in the log tells what it answers.",
    )
    heartbeat_age_seconds = gauge(
        "seconds",
        "Silence of the poll loop.",
        "Over a few seconds: a slow disk, or a machine without CPU to spare. At `http.stuck_seconds` `/healthz` fails.",
    )
    stack_dumps = counter(
        "dumps",
        "Times that the stacks of all threads were written to the log: the loop was stuck, or SIGUSR1 was sent.",
        "It grows: `loop_stuck` in the log has the stacks, and so where it was stuck.",
    )


class Detection:
    """Detection: how copies are found, and how well the weights fit the stream."""

    matches = counter(
        "links",
        "Links, by the index that found the matched article.",
        "One source vanishes: its index is off, or its lists are full (`hot_keys_total`).",
        Label("source", tuple(Source)),
    )
    candidates = counter(
        "candidates",
        "Candidates verified, by the index that found them first.",
        "Many an article, few confirmed: boilerplate fills the lists. Each costs time in `judge` and `look_up`.",
        _SOURCE,
    )
    candidates_confirmed = counter(
        "candidates",
        "Candidates that matched, by the index that found them first.",
        "The share of the candidates falls: thresholds or texts have changed.",
        _SOURCE,
    )
    simhash_probes = counter(
        "keys",
        "Keys of SimHash tables that articles looked up: their own and those some flipped bits away.",
        "An article whose copy the other indexes prove looks up none. Fewer an article: more copies are found before.",
    )
    simhash_hits = counter(
        "keys",
        "Keys of SimHash tables looked up under which the index had articles.",
        "The share of the probes grows with the index, up to the tables' occupancy; one that jumps: many like "
        "fingerprints, as of a template. With it grows the time of `look_up`: see `simhash.prefix_bits`.",
    )
    hot_keys = counter(
        "keys",
        "Landmarks and SimHash keys looked up whose lists are full (`landmarks.cap`, `simhash.bucket_cap`): older "
        "articles under them are not seen.",
        "Grows faster than the articles: a template or a site's footer floods the index; an article costs no more than "
        "the caps allow, but a copy may be missed.",
        _LISTS,
    )
    longest_list_articles = gauge(
        "articles",
        "Articles under the fullest key that the last commit looked up.",
        "Near the cap: `hot_keys_total` comes next.",
        _LISTS,
    )
    articles_stripped = counter(
        "articles",
        "Articles out of which lines of their site were taken that were learnt.",
        "A site whose stories come out as copies of one another: its lines are learnt at the end of the epoch.",
    )
    learnt_lines = gauge(
        "lines",
        "Lines known to be put around its articles by a site, since the epoch in force began.",
        "None after several epochs: do the articles have a source or a URL?",
    )
    idf_epoch = gauge(
        "number",
        "IDF epoch in force.",
        "Each switch may move fingerprints: see the drift.",
    )
    idf_vocabulary_words = gauge(
        "words",
        "Words counted.",
        "Jumps: another language, or texts that are none; each word takes some memory.",
    )
    epoch_drift_distance = histogram(
        "bits",
        "Hamming distance by which the fingerprints of the newest unique articles (up to 128) moved at the beginning "
        "of an epoch; an observation an article.",
        "See the mean.",
        _DRIFT_BITS,
    )
    epoch_drift_mean_distance = gauge(
        "bits",
        "Mean of that distance at the last epoch that was measured (none is where nothing unique has come since the "
        "start).",
        "Over 2 after the first epochs: the stream has changed, or `idf.epoch_articles` is too small; until the older "
        "articles have left the window SimHash finds fewer of their copies, landmarks find them as before.",
    )
    epoch_drift_articles = gauge(
        "articles",
        "Articles whose fingerprints were compared at the last epoch that was measured.",
        "Few: the mean says little.",
    )
    shadow_articles = counter(
        "articles",
        "Articles that the shadow judged too, by how it disagrees.",
        "What the other thresholds would change: see [trying other thresholds](README.md#trying-other-thresholds).",
        Label("disagreement", ("none", *Disagreement)),
    )
    shadow_left_out = counter(
        "messages",
        "Disagreements that were not sent, since the broker took no more.",
        "Grows: lower `shadow.sample`; all are counted above.",
    )
    shadow_enabled = gauge(
        "0 or 1",
        "1 where the settings ask for a shadow (`shadow.enabled`).",
        "As for the settings.",
    )
    shadow_running = gauge(
        "0 or 1",
        "1 while the shadow judges.",
        "0 though it is enabled: `shadow_ended` in the log says why; a restart begins it anew.",
    )


class Index:
    """Index: what is remembered, of which time, and the files of posting lists."""

    index_entries = gauge(
        "entries",
        "Entries kept, those in reserve and those not expired yet among them.",
        "Grows though the stream does not: the window moves no more, see `stream_time_seconds`.",
    )
    state_articles_judged = gauge(
        "articles",
        "Articles judged since the state began.",
        "Falls: another state is open, one that was restored or made anew.",
    )
    stream_time_seconds = gauge(
        "seconds",
        "Time of the newest article so far, since 1970 in UTC: the stream's time.",
        "Stands still: no new articles, or all are late. Ahead of the clock: a producer's clock is wrong.",
    )
    window_generations = gauge(
        "generations",
        "Parts of the window that are kept.",
        "Three or four are usual. One, though more than half a window has passed: the stream's time stands still.",
    )
    window_span_seconds = gauge(
        "seconds",
        "From the beginning of the oldest generation kept to the stream's time.",
        "Up to two windows (`window.days`), one and a half to two once that much has passed. Less after a restart: the "
        "state was lost, and copies of what is older are not found.",
    )
    index_runs = gauge(
        "files",
        "Files that hold the posting lists.",
        "A dozen are usual; many more: merging falls behind, has the process a second core?",
    )
    index_run_bytes = gauge(
        "bytes",
        "Size of the files that hold the posting lists.",
        "Should lie in the page cache: where memory is less than this, `look_up` waits for the disk.",
    )
    index_blocks_read = counter(
        "blocks",
        "Blocks of posting lists read from these files.",
        "Blocks an article grow with the index, and `look_up` with them.",
    )


class RocksDb:
    """RocksDB: the store under the state, and its disk."""

    state_disk_free_bytes = gauge(
        "bytes",
        "Free space of the file system with the state.",
        "Below a fifth of the size: make room. When it is full the process ends with exit code 1; nothing is lost.",
    )
    state_disk_size_bytes = gauge(
        "bytes", "Size of the file system with the state.", "Changes: another disk is mounted under `state.directory`."
    )
    rocksdb_live_bytes = gauge(
        "bytes",
        "Files of a column family that are in force. What is only in write buffers and the log is not in it.",
        "Grows by the entries; after two windows it stays. It does not: is expired space given back? See "
        "`space_not_reclaimed` in the log.",
        Label("family", tuple(Family)),
    )
    rocksdb_memory_bytes = gauge(
        "bytes",
        "Memory of write buffers, block cache, and what table readers keep outside of it.",
        "The cache goes up to `state.cache_bytes` and stays; write buffers up to twice `state.write_buffer_bytes` a "
        "family.",
        Label("part", ("memtables", "block_cache", "table_readers")),
    )
    rocksdb_block_cache_hits = counter(
        "blocks",
        "Blocks found in the block cache.",
        "See the misses.",
    )
    rocksdb_block_cache_misses = counter(
        "blocks",
        "Blocks read from files.",
        "Their share of both grows, and `look_up` with it: raise `state.cache_bytes`.",
    )
    rocksdb_pending_compaction_bytes = gauge(
        "bytes",
        "What compaction has yet to rewrite, as RocksDB estimates it.",
        "Grows for hours: the disk is too slow for what is written; writes are stopped in the end.",
    )
    rocksdb_running_compactions = gauge("compactions", "Compactions that run now.", "Never 0: see the pending bytes.")
    rocksdb_running_flushes = gauge(
        "flushes", "Write buffers that are written out now.", "Never 0: a slow disk; see `commit_seconds`."
    )
    rocksdb_write_stopped = gauge(
        "0 or 1",
        "1 while writes wait for compaction or for write buffers to be written out, or are slowed down by it.",
        "1: commits wait. Often: a faster disk, or larger write buffers (`state.write_buffer_bytes`).",
    )


class KafkaClient:
    """Kafka clients: what librdkafka tells of its connections, every `kafka.statistics.interval.ms` (10 s; 0: not)."""

    kafka_connected_brokers = gauge(
        "brokers",
        "Brokers that a client is connected to.",
        "0: the cluster cannot be reached. Fewer than there are is usual: a client connects to those it needs.",
        _CLIENT,
    )
    kafka_round_trip_seconds = gauge(
        "seconds",
        "From a request to its answer, since the last statistics; of a client that asked nothing it is not shown. A "
        "consumer with nothing to read waits at the broker for up to `fetch.wait.max.ms`, and that is in it.",
        "That of the producer grows: a slow or distant broker, or a busy one; `commit_seconds` grows with it.",
        _CLIENT,
        Label("stat", ("mean", "p99")),
    )
    kafka_request_timeouts = counter(
        "requests",
        "Requests that no broker answered in time.",
        "Grows: a broker that is overloaded or gone, or a network that drops packets.",
        _CLIENT,
    )
    kafka_transmission_errors = counter(
        "errors",
        "Requests that could not be sent, and answers that could not be received.",
        "Grows: connections break; `kafka_client` in the log has librdkafka's words.",
        _CLIENT,
    )
    kafka_received_bytes = counter(
        "bytes",
        "Bytes of brokers' answers, compressed as they come.",
        "Of the consumer: the input's traffic. Of the changelog: how fast a state is restored.",
        _CLIENT,
    )
    kafka_sent_bytes = counter(
        "bytes",
        "Bytes of requests to brokers, compressed as they go.",
        "Of the producer: outputs and changelog.",
        _CLIENT,
    )
    kafka_producer_queue_messages = gauge(
        "messages",
        "Messages of the producer that no broker has confirmed yet.",
        "Stays high: the broker takes less than is sent, and the reading slows down with it.",
    )
    kafka_producer_queue_bytes = gauge(
        "bytes",
        "Bytes of the producer's messages that no broker has confirmed yet.",
        "At `kafka.producer.queue.buffering.max.kbytes`: as for messages.",
    )
    kafka_fetch_queue_messages = gauge(
        "messages",
        "Messages that the consumer has fetched and the service has not read yet, a few events among them.",
        "0 while the lag grows: the network or the broker is the limit. High: the service is.",
    )


class Process:
    """Process: what it is, whether it works, and what it takes."""

    build = info(
        "Version of the service.",
        "Differs among the replicas: a new version is being rolled out.",
        Label("version", bound="one a process"),
    )
    role = gauge(
        "0 or 1",
        "1 for what the process is.",
        "No process is active: look at the logs of all. Restoring for long (the changelog is replayed, or what the "
        "group has decided is judged in silence): `/readyz` tells how much is left.",
        Label("role", ("restoring", "standby", "active")),
    )
    ready = gauge("0 or 1", "1 while it reads its input.", "0 on the active process: `/readyz` says what it waits for.")
    assigned_partitions = gauge(
        "partitions",
        "Input partitions that it reads.",
        "Fewer than there are on the active process: another member has joined `input.group`.",
    )
    memory_bytes = gauge(
        "bytes",
        "Memory in use, by kind: anonymous is the process's own, file is what it maps of files, which the system can "
        "take back.",
        "Anonymous memory grows for days: report it, with the other figures of memory. That of files grows with "
        "`index_run_bytes`, and is no harm.",
        Label("kind", ("anonymous", "file")),
    )
    memory_limit_bytes = gauge(
        "bytes",
        "Memory that the control group of the process allows it, as a container's limit; 0 where there is no limit.",
        "The process is killed when its own memory reaches it. Near it: a higher limit, or smaller caches "
        "(`state.cache_bytes`, `state.write_buffer_bytes`).",
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
        "Memory that is in use, of all kinds.",
        "Near what the machine or container allows: it would be killed; see `memory_bytes`.",
    ),
    Foreign(
        "process_virtual_memory_bytes",
        "gauge",
        "bytes",
        "Addresses taken, mapped files among them.",
        "Nothing: it says little.",
    ),
    Foreign(
        "process_cpu_seconds_total",
        "counter",
        "seconds",
        "CPU time of all threads.",
        "Its rate is the cores in use: near the machine's, the lag grows next.",
    ),
    Foreign(
        "process_start_time_seconds",
        "gauge",
        "seconds",
        "When the process began, since 1970 in UTC.",
        "Changes: it was started again; the log of the one before has the reason.",
    ),
    Foreign("process_open_fds", "gauge", "files", "Open files.", "Near the limit: raise that (`ulimit -n`)."),
    Foreign("process_max_fds", "gauge", "files", "How many may be open.", "Below 4,096: raise it."),
    Foreign(
        "python_info",
        "gauge",
        "",
        "Version of Python.",
        "As for the build.",
        tuple(
            Label(name, bound="one a process") for name in ("implementation", "major", "minor", "patchlevel", "version")
        ),
    ),
)
