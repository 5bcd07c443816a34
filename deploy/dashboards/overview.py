"""The dashboard for whoever is on duty: is all well, does it keep up, what is going wrong?

Knows queries and panels; knows nothing of Grafana's files.
"""

from deploy.dashboards.frame import Page, Section
from deploy.dashboards.panels import BLUE, GREEN, GREY, RED, YELLOW, heat, lines, number, states
from deploy.dashboards.queries import Series, quantiles

_QUANTILES = quantiles("stream_dedup_decision_seconds", 0.5, 0.9, 0.99)
_ARTICLES = "sum(rate(stream_dedup_articles_total{$of}[$__rate_interval]))"
_MESSAGES = "sum(rate(stream_dedup_commit_messages_sum{$of}[$__rate_interval]))"

_NOW = Section(
    "Now",
    [
        number(
            "Active",
            Series('sum(stream_dedup_role{$of, role="active"})'),
            unit="none",
            limits=[(1, GREEN), (2, RED)],
            base=RED,
            about="How many processes read the input. It must be one; the others are standbys.",
        ),
        number(
            "Standbys",
            Series('sum(stream_dedup_role{$of, role="standby"})'),
            unit="none",
            base=BLUE,
            about="How many processes could take over at once.",
        ),
        number(
            "Articles",
            Series(_ARTICLES),
            unit="suffix: /s",
            base=BLUE,
        ),
        number(
            "Duplicates",
            Series(
                f'sum(rate(stream_dedup_articles_total{{$of, decision="duplicate"}}[$__rate_interval])) / {_ARTICLES}'
            ),
            unit="percentunit",
            base=BLUE,
            decimals=1,
            about="Share of the articles.",
        ),
        number(
            "Behind",
            Series("max(stream_dedup_consumer_lag_seconds{$of})"),
            unit="s",
            limits=[(30, YELLOW), (300, RED)],
            about="For the partition that is furthest behind.",
        ),
        number(
            "99% decided within",
            _QUANTILES[2],
            unit="s",
            limits=[(1, YELLOW), (5, RED)],
            about="The objective is one second.",
        ),
        number(
            "Dead letters",
            Series(f"sum(rate(stream_dedup_dead_letters_total{{$of}}[$__rate_interval])) / {_MESSAGES}"),
            unit="percentunit",
            limits=[(0.05, YELLOW), (0.5, RED)],
            decimals=1,
            about="Share of the messages.",
        ),
        number(
            "Budget left",
            Series("min(job:stream_dedup_latency_budget:left30d{$index})"),
            unit="percentunit",
            limits=[(0, YELLOW), (0.25, GREEN)],
            base=RED,
            decimals=0,
            about="In 30 days, 1% of the messages may be decided more than a second after their timestamp. This is "
            "what is left of that budget; below 0 it is exceeded.",
        ),
        states(
            "Alerts",
            Series(
                'max by (alertname) (ALERTS{alertname=~"StreamDedup.+", alertstate="firing", severity="warning", '
                'namespace=~"$namespace", job=~"$job|"})'
                ' or max by (alertname) (2 * ALERTS{alertname=~"StreamDedup.+", alertstate="firing", '
                'severity="critical", namespace=~"$namespace", job=~"$job|"})',
                "{{alertname}}",
            ),
            names={1: ("warning", YELLOW), 2: ("critical", RED)},
            height=5,
            about="Firing alerts of the rules in deploy/prometheus/rules. deploy/runbook.md explains each.",
        ),
    ],
)

_RATE = Section(
    "Rate",
    [
        lines(
            "Articles by decision",
            Series("sum by (decision) (rate(stream_dedup_articles_total{$of}[$__rate_interval]))", "{{decision}}"),
            unit="suffix: /s",
            stacked=True,
            colours={"unique": GREEN, "duplicate": BLUE},
        ),
        lines(
            "Articles by input topic",
            Series("sum by (topic) (rate(stream_dedup_articles_total{$of}[$__rate_interval]))", "{{topic}}"),
            unit="suffix: /s",
            stacked=True,
        ),
        lines(
            "Messages arriving and decided",
            Series(
                f"clamp_min({_MESSAGES} + sum(deriv(stream_dedup_consumer_lag_messages{{$of}}[$__rate_interval])), 0)",
                "arriving",
            ),
            Series(_MESSAGES, "decided"),
            unit="suffix: /s",
            colours={"arriving": YELLOW, "decided": GREEN},
            about="Messages arriving are those decided plus the growth of the backlog.",
        ),
    ],
)

_ERRORS = Section(
    "Errors",
    [
        lines(
            "Dead letters by reason",
            Series("sum by (reason) (rate(stream_dedup_dead_letters_total{$of}[$__rate_interval])) > 0", "{{reason}}"),
            unit="suffix: /s",
            stacked=True,
        ),
        lines(
            "Commits by outcome",
            Series("sum by (outcome) (rate(stream_dedup_transactions_total{$of}[$__rate_interval]))", "{{outcome}}"),
            unit="suffix: /s",
            colours={"committed": GREEN, "aborted": RED},
        ),
        lines(
            "Silence of the poll loop",
            Series("stream_dedup_heartbeat_age_seconds{$of}", "{{instance}}"),
            unit="s",
            limits=[(20, RED)],
        ),
    ],
)

_DURATION = Section(
    "Duration",
    [
        lines(
            "From an article's timestamp to its decision",
            *_QUANTILES,
            unit="s",
            limits=[(1, RED)],
            colours={"median": GREEN, "90%": YELLOW, "99%": RED},
        ),
        heat(
            "Decisions by time taken",
            Series("sum by (le) (increase(stream_dedup_decision_seconds_bucket{$of}[$__rate_interval]))", "{{le}}"),
            unit="s",
        ),
        lines(
            "Where the time goes, in threads",
            Series("sum by (stage) (rate(stream_dedup_stage_seconds_total{$of}[$__rate_interval]))", "{{stage}}"),
            unit="none",
            stacked=True,
            about="Seconds per second: 1 is one thread fully busy.",
        ),
    ],
)

_LAG = Section(
    "Lag",
    [
        lines(
            "Waiting messages by topic",
            Series("sum by (topic) (stream_dedup_consumer_lag_messages{$of})", "{{topic}}"),
            unit="short",
            stacked=True,
        ),
        lines(
            "Waiting time: the ten partitions furthest behind",
            Series(
                "topk(10, max by (topic, partition) (stream_dedup_consumer_lag_seconds{$of}))",
                "{{topic}} {{partition}}",
            ),
            unit="s",
            limits=[(300, RED)],
        ),
        lines(
            "Share of the messages decided after more than a second",
            Series("max(job:stream_dedup_slow_decisions:share5m{$index})", "5 minutes"),
            Series("max(job:stream_dedup_slow_decisions:share1h{$index})", "1 hour"),
            Series("max(job:stream_dedup_slow_decisions:share6h{$index})", "6 hours"),
            unit="percentunit",
            limits=[(0.01, YELLOW), (0.144, RED)],
            about="The objective is 1%. At 14.4% the 30-day budget is used up after two days.",
        ),
    ],
)

_PROCESSES = Section(
    "Processes",
    [
        states(
            "Role",
            Series(
                "max by (instance) (1 * stream_dedup_role{$of})"
                ' + max by (instance) (1 * stream_dedup_role{$of, role="standby"})'
                ' + max by (instance) (2 * stream_dedup_role{$of, role="active"})',
                "{{instance}}",
            ),
            names={
                0: ("starting", GREY),
                1: ("restoring", YELLOW),
                2: ("standby", BLUE),
                3: ("active", GREEN),
            },
            width=12,
        ),
        lines(
            "Memory",
            Series("stream_dedup_memory_bytes{$of}", "{{instance}} {{kind}}"),
            Series("stream_dedup_memory_limited_bytes{$of}", "{{instance}} under the limit"),
            Series("stream_dedup_memory_limit_bytes{$of}", "{{instance}} limit"),
            unit="bytes",
            width=6,
        ),
        lines(
            "CPU, in cores",
            Series("rate(process_cpu_seconds_total{$of}[$__rate_interval])", "{{instance}}"),
            unit="none",
            width=6,
        ),
    ],
)

OVERVIEW = Page(
    "stream-dedup-overview",
    "stream_dedup: overview",
    "Rate, errors, duration and lag of one index, and its processes.",
    [_NOW, _RATE, _ERRORS, _DURATION, _LAG, _PROCESSES],
)
