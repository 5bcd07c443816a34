"""Metrics of what comes in and what is decided on it.

Knows articles, commits and stages; knows nothing of where values come from.
"""

from stream_dedup.article import Relation
from stream_dedup.observe.catalogue.labels import TOPIC
from stream_dedup.observe.metric import Label, counter, histogram

_DECISION_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600, 3600)
_COMMIT_MESSAGES = (1, 4, 16, 64, 128, 256, 512, 1024, 2048, 4096)
_COMMIT_BYTES = tuple(4**power * 1024.0 for power in range(10))  # 1 KiB to 256 MiB
_COMMIT_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30)
_DECISION = Label("decision", ("unique", "duplicate"))
_RELATION = Label("relation", ("none", *Relation))
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
        TOPIC,
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
    messages_silent = counter(
        "messages",
        "Messages that the group had already decided, judged again only to add them to the state.",
        "Grows: the state and its changelog were lost, or the settings have changed. Nothing is published until it "
        "stops growing.",
    )
