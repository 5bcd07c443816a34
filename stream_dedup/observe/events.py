"""All events of the log: what each of them means, and what to do about it.

Knows names, levels and fields; knows nothing of who tells them. The page `deploy/events.md` is made of it.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Event:
    """A kind of line in the log.

    Attributes:
        name: as lines have it under `event`.
        level: of all its lines.
        meaning: what has happened.
        fields: beside `timestamp`, `level` and `event`.
        action: what to do; empty where there is nothing to do.
        limited: whether those that are alike within half a minute are told as one, with `repeated`; see `Complaints`.
    """

    name: str
    level: Literal["debug", "info", "warning", "error"]
    meaning: str
    fields: tuple[str, ...] = ()
    action: str = ""
    limited: bool = False


_START_AND_END = (
    Event("starting", "info", "The state is open and the HTTP port listens.", ("http", "state")),
    Event("tracing", "info", "Spans are made, and sent to a collector.", ("endpoint",)),
    Event("restoring", "info", "Every 5 s while the changelog is replayed.", ("records_remaining", "articles")),
    Event("restored", "info", "The changelog was replayed: so many articles.", ("articles", "seconds")),
    Event("started", "info", "The start is done: it stands by, or is about to read.", ("judged", "idf_epoch")),
    Event("stopping", "info", "It was stopped in the middle of something that takes long.", ("detail",)),
    Event("stopped", "info", "It has ended in order.", ("judged",)),
    Event(
        "failed",
        "error",
        "It ends with this exit code. Only in JSON; the console shows `error:` and the message.",
        ("error", "exit_code"),
        "see the exit codes",
    ),
    Event(
        "state_discarded",
        "warning",
        "The state is damaged, or older than what the changelog holds: it is deleted and restored.",
        ("state", "error", "then"),
        "more than once: look at the disk",
    ),
    Event(
        "judged_again_in_silence",
        "warning",
        "The group has decided messages that the state does not know: they are judged without being published.",
        ("messages", "reason"),
        "after a change of settings, or where state and changelog were lost: nothing; else find out who moved the "
        "group's offsets",
    ),
)

_ROLES = (
    Event("ownership_gained", "info", "This process may write to the index now.", ("group", "term")),
    Event("ownership_lost", "info", "Another one may.", ("group", "term")),
    Event("active", "info", "It reads the input and decides, so long after it was its turn.", ("term", "seconds")),
    Event("topics_taken_in", "info", "It reads these topics from now on.", ("topics",)),
    Event(
        "topic_made_anew",
        "warning",
        "A topic of the input was deleted and made anew: it has other messages under the same offsets.",
        ("topic", "then"),
    ),
    Event(
        "input_lost",
        "warning",
        "The broker has no message any more where a partition was read to: it is read on where it goes on. Behind that "
        "place the messages between were deleted before they were read; before it the broker has lost some that were "
        "read, as after an unclean election, and new ones come under their offsets.",
        ("topic", "partition", "read_to", "goes_on"),
        "deleted: a longer `retention.ms` of the topic, or less lag; lost: look at the brokers, and have the producers "
        "send again what was not acknowledged by all replicas",
    ),
    Event("partitions_assigned", "info", "Partitions of the input were given to it.", ("partitions",)),
    Event("partitions_revoked", "info", "They were taken away.", ("partitions",)),
)

_STREAM = (
    Event(
        "progress",
        "info",
        "Every 30 s with input: articles a second, messages still to be read, and outcomes since the line before.",
        ("per_second", "lag", "unique", "duplicate", "withdrawn", "dead"),
    ),
    Event(
        "epoch",
        "info",
        "An IDF epoch began; how far fingerprints of the newest articles moved.",
        ("number", "drift_mean_bits", "drift_most_bits", "drift_articles"),
        "a mean over 2 after the first epochs: see the metric `epoch_drift_mean_distance`",
    ),
    Event(
        "message_not_decoded",
        "error",
        "A fault of the service: the message is a dead letter (`internal`). `detail` is where, and never what it says.",
        ("error", "detail", "topic", "partition", "offset"),
        "report it; `log.level = debug` tells all of it",
        limited=True,
    ),
    Event("message_fault", "debug", "The exception behind it, which may hold text of the article.", ("exception",)),
    Event(
        "registry_out_of_reach",
        "warning",
        "Messages wait for a schema; nothing is lost.",
        ("error", "detail"),
        "mend the schema registry, or the way to it",
        limited=True,
    ),
    Event("changelog_trimmed", "info", "What has expired was cut off the changelog.", ("begins", "done")),
)

_KAFKA = (
    Event(
        "kafka_client",
        "warning",
        "A warning of librdkafka, in its own words: it tries again by itself.",
        ("error", "detail"),
        "again and again: the broker, or the way to it",
        limited=True,
    ),
    Event("kafka_client_debug", "debug", "What else librdkafka says; more of it by `kafka.debug`.", ("detail",)),
    Event(
        "kafka_statistics_not_read",
        "warning",
        "librdkafka's statistics are not as expected: metrics `kafka_*` of that client stand still.",
        ("error", "client", "detail"),
        "report it, with the version of confluent-kafka",
        limited=True,
    ),
    Event("topic_created", "info", "A topic was missing.", ("topic",)),
    Event(
        "topic_limit_unknown",
        "warning",
        "The broker does not tell how large a message the topic takes: Kafka's default is assumed.",
        ("topic", "assumed", "error"),
        "grant the right DescribeConfigs on the topic",
    ),
    Event(
        "changelog_configuration_unknown",
        "warning",
        "The broker does not tell how the changelog is configured: that it keeps the state is not checked.",
        ("topic", "error"),
        "grant the right DescribeConfigs on the topic",
    ),
    Event(
        "changelog_not_trimmed",
        "warning",
        "What has expired stays in the changelog, which grows. Told once a day.",
        ("error", "topic", "detail", "needed"),
        "grant what `needed` says",
        limited=True,
    ),
    Event(
        "transaction_aborted",
        "warning",
        "A commit was taken back; the same messages are decided again.",
        ("error", "what", "detail"),
        "after a rebalance or a restart of the broker: nothing; without end: the broker's log",
        limited=True,
    ),
    Event(
        "writer_renewed",
        "warning",
        "A call of librdkafka did not come back: its producer is given up, and another one opened.",
        ("error", "detail"),
        "often: the coordinator of the transactions is unwell",
        limited=True,
    ),
    Event(
        "transaction_left_open",
        "warning",
        "At the end a transaction could not be aborted: the next writer does it, or the broker after its timeout.",
        ("id", "error"),
    ),
    Event(
        "producer_waits",
        "warning",
        "The producer does not find the broker yet.",
        ("error",),
        "see `kafka_client`",
    ),
    Event("producer_closed", "debug", "What the producer said as it was closed.", ("error",)),
    Event("refused_transaction_not_aborted", "debug", "Nothing of a refused transaction had come in.", ("error",)),
    Event(
        "input_waits",
        "warning",
        "The input cannot be read for a moment.",
        ("error", "detail"),
        "see `kafka_client`",
        limited=True,
    ),
    Event(
        "ownership_waits",
        "warning",
        "The group of the owner cannot be reached for a moment.",
        ("error", "detail"),
        "see `kafka_client`",
        limited=True,
    ),
    Event(
        "changelog_waits",
        "warning",
        "The changelog cannot be read for a moment.",
        ("error", "detail"),
        "see `kafka_client`",
        limited=True,
    ),
    Event(
        "group_commit_failed",
        "warning",
        "Without transactions: the group's offsets were not written, which only monitors of its lag look at.",
        ("error", "detail"),
        "again and again: the rights on the group",
        limited=True,
    ),
)

_STATE = (
    Event("snapshot_made", "info", "`stream-dedup state snapshot` has its copy.", ("directory",)),
    Event("snapshot_failed", "warning", "It has none.", ("error",), "room on the disk, and rights on the directory"),
    Event("space_reclaimed", "debug", "The disk got back what has expired.", ("before_generation", "seconds")),
    Event("space_not_reclaimed", "warning", "It did not; the next time tries again.", ("error",), "look at the disk"),
)

_SHADOW = (
    Event("shadow_begins", "info", "The shadow begins with a copy of the live state.", ("judged", "state")),
    Event("shadow_goes_on", "info", "It goes on where it was.", ("judged",)),
    Event("shadow_discarded", "info", "Its state does not stand where the live one does.", ("judged", "live")),
    Event("shadow_unreadable", "warning", "Its state cannot be read: it begins anew.", ("error",)),
    Event(
        "shadow_ended",
        "warning",
        "The shadow has failed and judges no more; the stream goes on.",
        ("error", "detail"),
        "a restart begins it anew; where it comes again, report it",
    ),
    Event("shadow_fault", "debug", "The exception behind it, which may hold text of an article.", ("exception",)),
)

_API = (
    Event("api_waits", "info", "The API listens, but there is no state to read yet.", ("api", "detail")),
    Event("answering", "info", "The API answers.", ("api",)),
    Event("api_ended", "warning", "The API's process has ended and is started again.", ("exit_code", "then")),
    Event(
        "api_not_started",
        "warning",
        "The system has no room for the API's process, which is tried again.",
        ("error", "then"),
        "memory, and the number of processes that are allowed",
    ),
    Event("api_not_served", "error", "It cannot listen.", ("error",), "another `api.port`"),
    Event(
        "question_not_answered",
        "warning",
        "A question was answered with 503.",
        ("error", "detail"),
        "as `detail` says: broker, registry or state",
        limited=True,
    ),
    Event(
        "state_not_read",
        "warning",
        "The state cannot be read; it is looked for again.",
        ("error", "detail", "then"),
        "while a service restores it: nothing",
        limited=True,
    ),
)

_FAULTS = (
    Event(
        "loop_stuck",
        "error",
        "The poll loop is silent for `http.stuck_seconds`; `stack` shows what all threads are at. Told once each time.",
        ("seconds", "stack"),
        "keep the line, it says where; /healthz fails, so that whoever probes it restarts the process",
    ),
    Event("loop_goes_on", "warning", "It goes on, after so long.", ("seconds",), "see `loop_stuck`"),
    Event(
        "interpreter_held",
        "error",
        "Native code kept the interpreter for `http.stuck_seconds`, so that nothing else could run. The stacks stand "
        "above, as plain text.",
        ("seconds",),
        "a disk that does not answer is the likeliest cause",
    ),
    Event("stacks_asked_for", "warning", "Somebody has sent SIGUSR1.", ("stack",)),
    Event(
        "crashed",
        "error",
        "A fault of the service: it ends with exit code 1. `exception` shows where, not what it says: see "
        "`exception_in_full`.",
        ("error", "exception"),
        "start it again, it continues where it was; report it",
    ),
    Event("thread_crashed", "error", "The same in a thread.", ("thread", "error", "exception"), "report it"),
    Event(
        "exception_lost",
        "error",
        "An exception where nobody could be told of it: in a destructor, or in a callback.",
        ("error", "detail", "exception"),
        "report it",
    ),
    Event(
        "exception_in_full",
        "debug",
        "The exception of the event before, with what it says, which may hold text of an article.",
        ("exception",),
    ),
    Event(
        "library_warning",
        "warning",
        "What a library logs of its own, from warnings on.",
        ("error", "detail", "exception"),
        limited=True,
    ),
    Event("python_warning", "warning", "A warning of Python.", ("error", "detail"), limited=True),
)

GROUPS = {
    "Start and end": _START_AND_END,
    "Roles and partitions": _ROLES,
    "The stream": _STREAM,
    "Kafka": _KAFKA,
    "The state on the disk": _STATE,
    "The shadow": _SHADOW,
    "The API": _API,
    "Faults": _FAULTS,
}
