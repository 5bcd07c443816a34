"""All events of the log: what each of them means, and what to do about it.

Knows names, levels and fields; knows nothing of what logs them. The page `deploy/events.md` is generated from it.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Event:
    """A kind of line in the log.

    Attributes:
        name: value of `event` in the lines.
        level: level of all its lines.
        meaning: what has happened.
        fields: fields besides `timestamp`, `level` and `event`.
        action: what to do; empty if nothing.
        limited: whether repetitions within half a minute are one line, with `repeated`; see `RecurringFaults`.
    """

    name: str
    level: Literal["debug", "info", "warning", "error"]
    meaning: str
    fields: tuple[str, ...] = ()
    action: str = ""
    limited: bool = False


_START_AND_END = (
    Event("starting", "info", "The state is open and the HTTP port is listening.", ("http", "state")),
    Event("tracing", "info", "Spans are created and sent to a collector.", ("endpoint",)),
    Event("restoring", "info", "Logged every 5 s while the changelog is replayed.", ("records_remaining", "articles")),
    Event(
        "restored",
        "info",
        "The changelog has been replayed; `articles` is the number of articles.",
        ("articles", "seconds"),
    ),
    Event(
        "started",
        "info",
        "The start is complete: the process is a standby, or is about to read.",
        ("judged", "idf_epoch"),
    ),
    Event("stopping", "info", "The process was stopped during a long operation.", ("detail",)),
    Event("stopped", "info", "The process has shut down cleanly.", ("judged",)),
    Event(
        "failed",
        "error",
        "The process exits with this code. Only in JSON; the console shows `error:` and the message.",
        ("error", "exit_code"),
        "see the exit codes",
    ),
    Event(
        "state_discarded",
        "warning",
        "The state is damaged, or older than what the changelog holds. It is deleted and restored.",
        ("state", "error", "then"),
        "if repeated, check the disk",
    ),
    Event(
        "judged_again_in_silence",
        "warning",
        "The state lacks messages that the group has already decided. They are judged again without being published.",
        ("messages", "reason"),
        "after a change of settings, or if state and changelog were lost: nothing; otherwise find out who moved the "
        "group's offsets",
    ),
)

_ROLES = (
    Event("ownership_gained", "info", "This process may now write to the index.", ("group", "term")),
    Event("ownership_lost", "info", "Another process may now write to the index.", ("group", "term")),
    Event(
        "active",
        "info",
        "The process reads the input and decides; `seconds` is the time since it was its turn.",
        ("term", "seconds"),
    ),
    Event("topics_taken_in", "info", "The process now reads these topics.", ("topics",)),
    Event(
        "topic_made_anew",
        "warning",
        "An input topic was deleted and recreated, so its offsets hold other messages.",
        ("topic", "then"),
    ),
    Event(
        "input_lost",
        "warning",
        "The broker no longer has a message at the position where a partition was read (`read_to`); reading continues "
        "at `goes_on`. If that is later, the messages in between were deleted before they were read. If it is "
        "earlier, the broker has lost messages that were read, for example after an unclean election, and new ones "
        "get their offsets.",
        ("topic", "partition", "read_to", "goes_on"),
        "deleted: raise the topic's `retention.ms`, or reduce the lag; lost: check the brokers, and have the "
        "producers resend what was not acknowledged by all replicas",
    ),
    Event("partitions_assigned", "info", "Input partitions were assigned to the process.", ("partitions",)),
    Event("partitions_revoked", "info", "Input partitions were revoked.", ("partitions",)),
)

_STREAM = (
    Event(
        "progress",
        "info",
        "Logged every 30 s while there is input: articles per second, messages still to be read, and outcomes since "
        "the previous line, without those that did not occur.",
        ("per_second", "lag", "unique", "duplicate", "withdrawn", "dead"),
    ),
    Event(
        "epoch",
        "info",
        "An IDF epoch has begun. The fields say how far the fingerprints of the newest articles moved. Not logged if "
        "the process has judged no unique article in the epoch before.",
        ("number", "drift_mean_bits", "drift_most_bits", "drift_articles"),
        "a mean over 2 after the first epochs: see the metric `epoch_drift_mean_distance`",
    ),
    Event(
        "message_not_decoded",
        "error",
        "A fault of the service has turned the message into a dead letter (`internal`). `detail` says where, never "
        "the exception's text.",
        ("error", "detail", "topic", "partition", "offset"),
        "report it; `log.level = debug` shows everything",
        limited=True,
    ),
    Event("message_fault", "debug", "The exception behind it, which may contain text of the article.", ("exception",)),
    Event(
        "registry_out_of_reach",
        "warning",
        "Messages wait for a schema; nothing is lost.",
        ("error", "detail"),
        "fix the schema registry, or the network path to it",
        limited=True,
    ),
    Event(
        "changelog_trimmed",
        "info",
        "The changelog should begin at `begins`, since the records before it have expired. `done`: whether the broker "
        "has removed them; if not, see `changelog_not_trimmed`.",
        ("begins", "done"),
    ),
)

_KAFKA = (
    Event(
        "kafka_client",
        "warning",
        "A warning of librdkafka, in its own words. It retries by itself.",
        ("error", "detail"),
        "if repeated, check the broker or the network path to it",
        limited=True,
    ),
    Event("kafka_client_debug", "debug", "Other messages of librdkafka; `kafka.debug` enables more.", ("detail",)),
    Event(
        "kafka_statistics_not_read",
        "warning",
        "librdkafka's statistics have an unexpected form: the metrics `kafka_*` of that client stop changing.",
        ("error", "client", "detail"),
        "report it, with the version of confluent-kafka",
        limited=True,
    ),
    Event("topic_created", "info", "A missing topic was created.", ("topic",)),
    Event(
        "topic_limit_unknown",
        "warning",
        "The broker does not report the topic's maximum message size. Kafka's default is assumed.",
        ("topic", "assumed", "error"),
        "grant the right DescribeConfigs on the topic",
    ),
    Event(
        "changelog_configuration_unknown",
        "warning",
        "The broker does not report the changelog's configuration. The service cannot check that it retains the state.",
        ("topic", "error"),
        "grant the right DescribeConfigs on the topic",
    ),
    Event(
        "changelog_not_trimmed",
        "warning",
        "Expired records remain in the changelog, which grows. Logged once a day.",
        ("error", "topic", "detail", "needed"),
        "provide what `needed` names; if it is empty, see `detail`",
        limited=True,
    ),
    Event(
        "transaction_aborted",
        "warning",
        "A commit was rolled back; the same messages are decided again.",
        ("error", "what", "detail"),
        "after a rebalance or a broker restart: nothing; if it does not end: check the broker's log",
        limited=True,
    ),
    Event(
        "writer_renewed",
        "warning",
        "A call to librdkafka did not return. Its producer is abandoned and another one opened.",
        ("error", "detail"),
        "if frequent, check the transaction coordinator",
        limited=True,
    ),
    Event(
        "transaction_left_open",
        "warning",
        "A transaction could not be aborted at shutdown. The next writer aborts it, or the broker does after its "
        "timeout.",
        ("id", "error"),
    ),
    Event(
        "producer_waits",
        "warning",
        "The producer cannot reach the broker yet.",
        ("error",),
        "see `kafka_client`",
    ),
    Event("producer_closed", "debug", "What the producer reported as it was closed.", ("error",)),
    Event(
        "refused_transaction_not_aborted",
        "debug",
        "Nothing of a refused transaction had arrived, so there was nothing to abort.",
        ("error",),
    ),
    Event(
        "input_waits",
        "warning",
        "The input cannot be read at the moment.",
        ("error", "detail"),
        "`UNKNOWN_TOPIC_OR_PART`: create the topic that `detail` names, or correct `input.topics`; otherwise see "
        "`kafka_client`",
        limited=True,
    ),
    Event(
        "partitions_elsewhere",
        "warning",
        "Another member of the consumer group reads some of the input, so this index does not see all articles.",
        ("error", "partitions", "first"),
        "`kafka-consumer-groups --describe --members` tells who: stop it, or give one of the two another `input.group`",
        limited=True,
    ),
    Event(
        "ownership_waits",
        "warning",
        "The owner group cannot be reached at the moment.",
        ("error", "detail"),
        "see `kafka_client`",
        limited=True,
    ),
    Event(
        "changelog_waits",
        "warning",
        "The changelog cannot be read at the moment.",
        ("error", "detail"),
        "see `kafka_client`",
        limited=True,
    ),
    Event(
        "group_commit_failed",
        "warning",
        "Without transactions: the group's offsets were not written. Lag monitors use them, and a state that is "
        "rebuilt, or made anew without its changelog.",
        ("error", "detail"),
        "if repeated, check the rights on the group",
        limited=True,
    ),
)

_STATE = (
    Event("snapshot_made", "info", "`stream-dedup state snapshot` has made its copy.", ("directory",)),
    Event(
        "snapshot_failed",
        "warning",
        "`stream-dedup state snapshot` has failed.",
        ("error",),
        "see `error`: make room, grant the rights on the directory, or name another one",
    ),
    Event(
        "space_reclaimed", "debug", "The disk space of expired data was reclaimed.", ("before_generation", "seconds")
    ),
    Event(
        "space_not_reclaimed",
        "warning",
        "Expired disk space was not reclaimed. The service tries again next time.",
        ("error",),
        "check the disk",
    ),
)

_SHADOW = (
    Event("shadow_begins", "info", "The shadow starts with a copy of the live state.", ("judged", "state")),
    Event("shadow_goes_on", "info", "The shadow continues where it was.", ("judged",)),
    Event(
        "shadow_discarded",
        "info",
        "The shadow's state is not at the live state's position and is discarded.",
        ("judged", "live"),
    ),
    Event("shadow_unreadable", "warning", "The shadow's state cannot be read, so the shadow starts over.", ("error",)),
    Event(
        "shadow_ended",
        "warning",
        "The shadow has failed and no longer judges. The stream continues.",
        ("error", "detail"),
        "if the disk is full, make room; restart to start it over; if it fails again, report it",
    ),
    Event("shadow_fault", "debug", "The exception behind it, which may contain text of an article.", ("exception",)),
)

_API = (
    Event("api_waits", "info", "The API is listening, but there is no state to read yet.", ("api", "detail")),
    Event("answering", "info", "The API is ready to answer.", ("api",)),
    Event("api_ended", "warning", "The API's process has ended and is restarted.", ("exit_code", "then")),
    Event(
        "api_not_started",
        "warning",
        "The system cannot start the API's process; the service tries again.",
        ("error", "then"),
        "check the memory and the limit on processes",
    ),
    Event("api_not_served", "error", "The API cannot listen on its port.", ("error",), "use another `api.port`"),
    Event(
        "question_not_answered",
        "warning",
        "A request was answered with 503, code `unavailable`.",
        ("error", "detail"),
        "see `detail`: broker, registry or state",
        limited=True,
    ),
    Event(
        "state_not_read",
        "warning",
        "The state cannot be read; the API tries again.",
        ("error", "detail", "then"),
        "while a service is restoring it: nothing",
        limited=True,
    ),
)

_FAULTS = (
    Event(
        "loop_stuck",
        "error",
        "The poll loop has been silent for `http.stuck_seconds`; `stack` shows where all threads are. Logged once "
        "each time.",
        ("seconds", "stack"),
        "keep this line, it shows where; /healthz fails, so a liveness probe restarts the process",
    ),
    Event("loop_goes_on", "warning", "The poll loop has resumed, after this time.", ("seconds",), "see `loop_stuck`"),
    Event(
        "interpreter_held",
        "error",
        "Nothing ran in the interpreter for `http.stuck_seconds`: native code held it, or the process or the machine "
        "was suspended. The stacks are above, as plain text.",
        ("seconds",),
        "most likely a disk that does not respond, unless somebody suspended it",
    ),
    Event("stacks_asked_for", "warning", "Somebody sent SIGUSR1.", ("stack",)),
    Event(
        "crashed",
        "error",
        "A fault of the service: it exits with code 1. `exception` shows where, but not the message, for which see "
        "`exception_in_full`.",
        ("error", "exception"),
        "start it again, it resumes where it was; report it",
    ),
    Event(
        "thread_crashed",
        "error",
        "An uncaught exception in a thread, logged like `crashed`.",
        ("thread", "error", "exception"),
        "report it",
    ),
    Event(
        "exception_lost",
        "error",
        "An exception that could not be passed on, in a destructor or a callback.",
        ("error", "detail", "exception"),
        "report it",
    ),
    Event(
        "exception_in_full",
        "debug",
        "The exception of the previous event with its message, which may contain text of an article.",
        ("exception",),
    ),
    Event(
        "request_not_answered",
        "error",
        "A request to `http.port` failed: it was answered with 500, or not at all.",
        ("error", "exception"),
        "report it, unless the system lacks threads or files",
        limited=True,
    ),
    Event(
        "library_warning",
        "warning",
        "What a library logs, at level warning or above.",
        ("error", "detail", "exception"),
        limited=True,
    ),
    Event("python_warning", "warning", "A warning from Python.", ("error", "detail"), limited=True),
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
