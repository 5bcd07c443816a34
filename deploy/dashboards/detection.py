"""The dashboard of detection: what is found, by what, and whether the stream or the weights have changed.

Knows queries and panels; knows nothing of Grafana's files.
"""

from deploy.dashboards.frame import Page, Section
from deploy.dashboards.panels import BLUE, RED, YELLOW, heat, lines, number
from deploy.dashboards.queries import Series

_ALL = "sum(rate(stream_dedup_articles_total{$of}[$__rate_interval]))"


def _share(selection: str, by: str) -> str:
    return f"sum by ({by}) (rate(stream_dedup_articles_total{{$of{selection}}}[$__rate_interval])) / scalar({_ALL})"


_NOW = Section(
    "Now",
    [
        number(
            "Duplicates",
            Series(f'sum(rate(stream_dedup_articles_total{{$of, decision="duplicate"}}[$__rate_interval])) / {_ALL}'),
            unit="percentunit",
            width=4,
            base=BLUE,
            decimals=1,
            about="Share of the articles.",
        ),
        number(
            "Candidates per article",
            Series(f"sum(rate(stream_dedup_candidates_total{{$of}}[$__rate_interval])) / {_ALL}"),
            unit="none",
            width=4,
            base=BLUE,
            decimals=2,
        ),
        number(
            "Confirmed",
            Series(
                "sum(rate(stream_dedup_candidates_confirmed_total{$of}[$__rate_interval]))"
                " / sum(rate(stream_dedup_candidates_total{$of}[$__rate_interval]))"
            ),
            unit="percentunit",
            width=4,
            base=BLUE,
            decimals=1,
            about="Share of the candidates.",
        ),
        number(
            "Full lists per article",
            Series(f"sum(rate(stream_dedup_hot_keys_total{{$of}}[$__rate_interval])) / {_ALL}"),
            unit="none",
            width=4,
            limits=[(0.5, YELLOW), (1, RED)],
            decimals=2,
        ),
        number("IDF epoch", Series("max(stream_dedup_idf_epoch{$of})"), unit="none", width=4, base=BLUE),
        number(
            "Drift at the last switch",
            Series("max(stream_dedup_epoch_drift_mean_distance{$of})"),
            unit="suffix: bits",
            width=4,
            limits=[(2, YELLOW), (4, RED)],
            decimals=1,
        ),
    ],
)

_SHARES = Section(
    "What is found",
    [
        lines(
            "Share of duplicates",
            Series(_share(', decision="duplicate"', "decision"), "now"),
            Series("max(job:stream_dedup_duplicates:share1h{$index})", "1 hour"),
            Series("max(job:stream_dedup_duplicates:share1h{$index} offset 1d)", "1 hour, a day ago"),
            unit="percentunit",
            most=1,
        ),
        lines(
            "Relations, as shares of all articles",
            Series(_share(', relation!="none"', "relation"), "{{relation}}"),
            unit="percentunit",
            stacked=True,
        ),
        lines(
            "Share of duplicates by input topic",
            Series(
                'sum by (topic) (rate(stream_dedup_articles_total{$of, decision="duplicate"}[$__rate_interval]))'
                " / sum by (topic) (rate(stream_dedup_articles_total{$of}[$__rate_interval]))",
                "{{topic}}",
            ),
            unit="percentunit",
            most=1,
        ),
    ],
)

_SOURCES = Section(
    "What finds it",
    [
        lines(
            "Candidates per article, by source",
            Series(
                f"sum by (source) (rate(stream_dedup_candidates_total{{$of}}[$__rate_interval])) / scalar({_ALL})",
                "{{source}}",
            ),
            unit="none",
            stacked=True,
        ),
        lines(
            "Share of them confirmed",
            Series(
                "sum by (source) (rate(stream_dedup_candidates_confirmed_total{$of}[$__rate_interval]))"
                " / sum by (source) (rate(stream_dedup_candidates_total{$of}[$__rate_interval]))",
                "{{source}}",
            ),
            unit="percentunit",
            most=1,
        ),
        lines(
            "Links by the index that found them",
            Series("sum by (source) (rate(stream_dedup_matches_total{$of}[$__rate_interval]))", "{{source}}"),
            unit="suffix: /s",
            stacked=True,
        ),
        lines(
            "Full lists per article",
            Series(
                f"sum by (source) (rate(stream_dedup_hot_keys_total{{$of}}[$__rate_interval])) / scalar({_ALL})",
                "{{source}}",
            ),
            unit="none",
            limits=[(1, RED)],
        ),
        lines(
            "Withdrawals and successions",
            Series("sum(rate(stream_dedup_withdrawals_total{$of}[$__rate_interval]))", "withdrawals"),
            Series("sum(rate(stream_dedup_successions_total{$of}[$__rate_interval]))", "successions"),
            unit="suffix: /s",
        ),
        lines(
            "Site lines",
            Series("max(stream_dedup_learnt_lines{$of})", "lines known"),
            Series("sum(increase(stream_dedup_articles_stripped_total{$of}[$__rate_interval]))", "articles with one"),
            unit="short",
        ),
    ],
)

_DRIFT = Section(
    "Weights",
    [
        lines(
            "Mean drift at a switch",
            Series("stream_dedup_epoch_drift_mean_distance{$of}", "{{instance}}"),
            unit="suffix: bits",
            limits=[(2, YELLOW)],
        ),
        heat(
            "Drift of single articles",
            Series(
                "sum by (le) (increase(stream_dedup_epoch_drift_distance_bucket{$of}[$__rate_interval]))",
                "{{le}}",
            ),
            unit="suffix: bits",
        ),
        lines(
            "Words counted",
            Series("max(stream_dedup_idf_vocabulary_words{$of})", "words"),
            unit="short",
        ),
    ],
)

_SHADOW = Section(
    "Shadow: other thresholds, without effect",
    [
        lines(
            "Articles that would change",
            Series(
                'sum by (disagreement) (rate(stream_dedup_shadow_articles_total{$of, disagreement!="none"}'
                "[$__rate_interval])) / scalar(sum(rate(stream_dedup_shadow_articles_total{$of}[$__rate_interval])))",
                "{{disagreement}}",
            ),
            unit="percentunit",
            stacked=True,
            about="As shares of the articles that both judged. `duplicate` and `unique` say what an article is only in "
            "the shadow.",
        ),
        lines(
            "Shadow running",
            Series("stream_dedup_shadow_running{$of}", "{{instance}} judges"),
            Series("stream_dedup_shadow_enabled{$of}", "{{instance}} enabled"),
            unit="none",
            most=1,
        ),
        lines(
            "Disagreements that were not sent",
            Series("sum(rate(stream_dedup_shadow_left_out_total{$of}[$__rate_interval]))", "left out"),
            unit="suffix: /s",
        ),
    ],
)

DETECTION = Page(
    "stream-dedup-detection",
    "stream_dedup: detection",
    "What is found and by which index, fingerprint drift, and what other thresholds would change.",
    [_NOW, _SHARES, _SOURCES, _DRIFT, _SHADOW],
)
