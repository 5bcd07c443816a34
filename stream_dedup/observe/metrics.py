"""All metrics of the service, in one place.

Knows names, units and labels; knows nothing of where values come from.
"""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

_LATENCY_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600, 3600)
_COMMIT_MESSAGES = (1, 4, 16, 64, 128, 256, 512, 1024, 4096)
_COMMIT_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30)
_DRIFT_BITS = (0, 1, 2, 3, 4, 6, 8, 12, 16)


class Metrics:
    """The metrics and the registry that `/metrics` shows. Make one a process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self.build = Info("stream_dedup_build", "Version of the service.", registry=self.registry)
        self.articles = self._counter(
            "articles",
            "Articles judged, by decision (unique, duplicate) and relation.",
            "decision",
            "relation",
        )
        self.stripped = self._counter(
            "articles_stripped", "Articles out of which lines of their site were taken that were learnt."
        )
        self.silent = self._counter(
            "articles_silent",
            "Articles that the group had decided already, judged again only for the state to know them.",
        )
        self.dead_letters = self._counter("dead_letters", "Messages that could not be judged, by reason.", "reason")
        self.candidates = self._counter(
            "candidates", "Candidates verified, by the index that found them first.", "source"
        )
        self.confirmed = self._counter(
            "candidates_confirmed", "Candidates that matched, by the index that found them first.", "source"
        )
        self.hot_keys = self._counter(
            "hot_keys", "Keys that articles looked up and whose posting lists are full, by index.", "source"
        )
        self.longest_list = self._gauge(
            "longest_list_articles",
            "Articles under the fullest key that the last commit looked up, by index.",
            "source",
        )
        self.matches = self._counter("matches", "Links, by the index that found the matched article.", "source")
        self.stage_seconds = self._counter("stage_seconds", "Time spent, by stage.", "stage")
        self.transactions = self._counter("transactions", "Commits, by outcome: committed, aborted.", "outcome")
        self.commit_messages = self._histogram("commit_messages", "Messages of a commit.", _COMMIT_MESSAGES)
        self.commit_seconds = self._histogram(
            "commit_seconds", "Time from the first output of a commit to the written state.", _COMMIT_SECONDS
        )
        self.withdrawals = self._counter("withdrawals", "Articles withdrawn.")
        self.successions = self._counter("successions", "Clusters that got another canonical article.")
        self.rebalances = self._counter("rebalances", "Times that input partitions were given or taken.")
        self.decision_seconds = self._histogram(
            "decision_seconds",
            "Time from a message's timestamp to its committed decision.",
            _LATENCY_SECONDS,
        )
        self.lag = self._gauge(
            "consumer_lag_messages", "Messages not consumed yet, by partition.", "topic", "partition"
        )
        self.assigned = self._gauge("assigned_partitions", "Input partitions that this process reads.")
        self.ready = self._gauge("ready", "1 while the service reads its input, else 0.")
        self.epoch = self._gauge("idf_epoch", "Number of the IDF epoch in force.")
        self.drift_bits = self._histogram(
            "epoch_drift_bits", "Bits that fingerprints of a sample moved by where an epoch began.", _DRIFT_BITS
        )
        self.drift_mean = self._gauge("epoch_drift_mean_bits", "Their mean at the last epoch that was measured.")
        self.drift_articles = self._gauge("epoch_drift_articles", "Articles of the sample at that epoch.")
        self.vocabulary = self._gauge("idf_vocabulary_words", "Words counted.")
        self.learnt_lines = self._gauge("learnt_lines", "Lines known to be put around its articles by a site.")
        self.runs = self._gauge("index_runs", "Files that hold the posting lists.")
        self.blocks_read = self._counter("index_blocks_read", "Blocks of posting lists read from these files.")
        self.judged = self._gauge("state_articles_judged", "Articles judged since the state began.")
        self.entries = self._gauge(
            "index_entries", "Entries kept, those in reserve and those not expired yet among them."
        )
        self.generations = self._gauge("window_generations", "Parts of the window that are kept.")
        self.stream_time = self._gauge("stream_time_seconds", "Time of the newest article so far, since 1970 in UTC.")
        self.changelog_position = self._gauge("changelog_position", "Offset of the changelog that the state stands at.")
        self.changelog_remaining = self._gauge(
            "changelog_records_remaining", "Records of the changelog that the state has yet to follow."
        )
        self.role = self._gauge("role", "1 for the role of this process: restoring, standby or active.", "role")

    def become(self, role: str) -> None:
        """Show a role: restoring, standby or active."""
        for known in ("restoring", "standby", "active"):
            self.role.labels(known).set(known == role)

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(f"stream_dedup_{name}", meaning, labels, registry=self.registry)

    def _gauge(self, name: str, meaning: str, *labels: str) -> Gauge:
        return Gauge(f"stream_dedup_{name}", meaning, labels, registry=self.registry)

    def _histogram(self, name: str, meaning: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(f"stream_dedup_{name}", meaning, buckets=buckets, registry=self.registry)
