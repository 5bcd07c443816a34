"""The dashboard of Kafka and the state: transactions, clients, changelog, restoring.

Knows queries and panels; knows nothing of Grafana's files.
"""

from deploy.dashboards.frame import Page, Section
from deploy.dashboards.panels import BLUE, GREEN, RED, YELLOW, lines, number
from deploy.dashboards.queries import Series, quantiles

_NOW = Section(
    "Now",
    [
        number(
            "Commits",
            Series('sum(rate(stream_dedup_transactions_total{$of, outcome="committed"}[$__rate_interval]))'),
            unit="suffix: /s",
            base=BLUE,
        ),
        number(
            "Aborted",
            Series(
                'sum(rate(stream_dedup_transactions_total{$of, outcome="aborted"}[$__rate_interval]))'
                " / sum(rate(stream_dedup_transactions_total{$of}[$__rate_interval]))"
            ),
            unit="percentunit",
            limits=[(0.01, YELLOW), (0.1, RED)],
            decimals=1,
            about="Share of the commits.",
        ),
        number(
            "99% commit within",
            quantiles("stream_dedup_commit_seconds", 0.99)[0],
            unit="s",
            limits=[(1, YELLOW), (5, RED)],
        ),
        number(
            "Partitions",
            Series("sum(stream_dedup_assigned_partitions{$of})"),
            unit="none",
            limits=[(1, GREEN)],
            base=RED,
        ),
        number(
            "Rebalances", Series("sum(increase(stream_dedup_rebalances_total{$of}[$__range]))"), unit="none", base=BLUE
        ),
        number(
            "Changelog left",
            Series("max(stream_dedup_changelog_records_remaining{$of})"),
            unit="short",
            limits=[(1000, YELLOW)],
        ),
        number(
            "Schema registry",
            Series("max(stream_dedup_registry_waiting{$of})"),
            unit="none",
            limits=[(1, RED)],
            about="0: nothing is waiting for it, or there is no registry.",
        ),
        number(
            "Client errors",
            Series(
                "sum(increase(stream_dedup_kafka_transmission_errors_total{$of}[$__range]))"
                " + sum(increase(stream_dedup_kafka_request_timeouts_total{$of}[$__range]))"
            ),
            unit="none",
            limits=[(1, YELLOW), (100, RED)],
            decimals=0,
            about="Within the time range shown.",
        ),
    ],
)

_COMMITS = Section(
    "Commits",
    [
        lines(
            "Transactions by outcome",
            Series("sum by (outcome) (rate(stream_dedup_transactions_total{$of}[$__rate_interval]))", "{{outcome}}"),
            unit="suffix: /s",
            colours={"committed": GREEN, "aborted": RED},
        ),
        lines(
            "Time of a commit",
            *quantiles("stream_dedup_commit_seconds", 0.5, 0.99),
            unit="s",
            colours={"median": GREEN, "99%": RED},
        ),
        lines(
            "Mean time of its parts",
            *(
                Series(
                    f'sum(rate(stream_dedup_stage_seconds_total{{$of, stage="{stage}"}}[$__rate_interval]))'
                    " / sum(rate(stream_dedup_commit_seconds_count{$of}[$__rate_interval]))",
                    stage,
                )
                for stage in ("produce", "transaction", "apply")
            ),
            unit="s",
            stacked=True,
        ),
        lines(
            "Messages of a commit",
            *quantiles("stream_dedup_commit_messages", 0.5, 0.99),
            unit="none",
            colours={"median": GREEN, "99%": RED},
        ),
        lines(
            "Bytes of a commit",
            *quantiles("stream_dedup_commit_bytes", 0.5, 0.99),
            unit="bytes",
            colours={"median": GREEN, "99%": RED},
        ),
        lines(
            "Partitions and rebalances",
            Series("stream_dedup_assigned_partitions{$of}", "{{instance}} partitions"),
            Series("stream_dedup_unread_topics{$of}", "{{instance}} topics not read"),
            Series("increase(stream_dedup_rebalances_total{$of}[$__rate_interval])", "{{instance}} rebalances"),
            Series("increase(stream_dedup_input_lost_total{$of}[$__rate_interval])", "{{instance}} offsets lost"),
            unit="none",
        ),
    ],
)

_CLIENTS = Section(
    "Clients",
    [
        lines(
            "Round trip of 99% of the requests",
            Series('max by (client) (stream_dedup_kafka_round_trip_seconds{$of, stat="p99"})', "{{client}}"),
            unit="s",
            about="For the slowest process.",
        ),
        lines(
            "Received",
            Series(
                "sum by (client) (rate(stream_dedup_kafka_received_bytes_total{$of}[$__rate_interval]))", "{{client}}"
            ),
            unit="Bps",
            stacked=True,
        ),
        lines(
            "Sent",
            Series("sum by (client) (rate(stream_dedup_kafka_sent_bytes_total{$of}[$__rate_interval]))", "{{client}}"),
            unit="Bps",
            stacked=True,
        ),
        lines(
            "Errors and timeouts",
            Series(
                "sum by (client) (rate(stream_dedup_kafka_transmission_errors_total{$of}[$__rate_interval]))",
                "{{client}} errors",
            ),
            Series(
                "sum by (client) (rate(stream_dedup_kafka_request_timeouts_total{$of}[$__rate_interval]))",
                "{{client}} timeouts",
            ),
            unit="suffix: /s",
        ),
        lines(
            "Messages in queues",
            Series("sum(stream_dedup_kafka_producer_queue_messages{$of})", "to be confirmed"),
            Series("sum(stream_dedup_kafka_fetch_queue_messages{$of})", "fetched"),
            unit="short",
        ),
        lines(
            "Connected brokers",
            Series("stream_dedup_kafka_connected_brokers{$of}", "{{instance}} {{client}}"),
            unit="none",
        ),
    ],
)

_STATE = Section(
    "State",
    [
        lines(
            "Changelog, written and followed",
            Series("deriv(stream_dedup_changelog_position{$of}[$__rate_interval])", "{{instance}}"),
            unit="suffix: /s",
            least=None,
            about="Records per second. A standby has the active process's rate, a moment later.",
        ),
        lines(
            "Records left to follow",
            Series("stream_dedup_changelog_records_remaining{$of}", "{{instance}}"),
            unit="short",
            limits=[(1000, YELLOW)],
        ),
        lines(
            "Judged again without publishing",
            Series(
                "sum by (instance) (rate(stream_dedup_messages_silent_total{$of}[$__rate_interval]))", "{{instance}}"
            ),
            unit="suffix: /s",
        ),
    ],
)

KAFKA = Page(
    "stream-dedup-kafka",
    "stream_dedup: Kafka and state",
    "Transactions, commits, Kafka clients, the changelog and restores.",
    [_NOW, _COMMITS, _CLIENTS, _STATE],
)
