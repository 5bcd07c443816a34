"""What a running service says of itself on its own port.

Knows names of metrics, the probe, how they are read and how often; knows nothing of the state.
"""

import math
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlencode

from prometheus_client.parser import text_string_to_metric_families

from stream_dedup.settings import HttpSettings

_SECONDS = 1.0
_FRESH_SECONDS = 1.0
_MOST_BYTES = 8 << 20
_NEW = "new"  # what articles without a relation are called
_ARTICLES, _LAG = "stream_dedup_articles_total", "stream_dedup_consumer_lag_messages"
_SHADOW, _SHADOW_ENABLED = "stream_dedup_shadow_articles_total", "stream_dedup_shadow_enabled"
_SHADOW_RUNNING = "stream_dedup_shadow_running"
_ALIKE = "none"  # what is called the disagreement where there is none
_ASKED = (_ARTICLES, _LAG, _SHADOW, _SHADOW_ENABLED, _SHADOW_RUNNING)
_QUERY = urlencode([("name[]", name) for name in _ASKED])  # the whole page takes both sides some milliseconds


@dataclass(frozen=True, slots=True)
class ShadowFigures:
    """What the shadow of a service has come to.

    Attributes:
        judging: whether it judges now.
        articles: that it judged since the service started.
        disagreements: those among them that it judged otherwise, by kinds that came.
    """

    judging: bool
    articles: int
    disagreements: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Figures:
    """What a service tells of itself.

    Attributes:
        decisions: articles judged since it started, by relations that came, `new` for none.
        duplicates: those of them that are duplicates.
        lag: messages that wait in the input; None where that is not known yet.
        shadow: None where the settings ask for none.
        ready: whether it reads its input, or follows it closely; None where it does not tell.
        not_ready: why it is not ready, as its probe says it; else empty.
    """

    decisions: Mapping[str, int]
    duplicates: int
    lag: int | None
    shadow: ShadowFigures | None
    ready: bool | None
    not_ready: str


class Telling:
    """A service that is asked for its figures, once a second at most: each time takes some milliseconds of its stream.

    Safe between threads.

    Args:
        settings: of its port.
    """

    def __init__(self, settings: HttpSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._asked_at = -math.inf  # by `time.monotonic`
        self._figures: Figures | None = None

    def figures(self) -> Figures | None:
        """Return what the service shows, a second old at most; None where none answers."""
        with self._lock:
            if time.monotonic() - self._asked_at >= _FRESH_SECONDS:
                self._figures = figures_of(self._settings)
                self._asked_at = time.monotonic()
            return self._figures


def figures_of(settings: HttpSettings) -> Figures | None:
    """Return what the service of some settings shows; None where none answers."""
    try:
        status, page = _asked(settings, f"/metrics?{_QUERY}")
        if status != HTTPStatus.OK:
            return None
        return Figures(*_counts(page), *_readiness(*_asked(settings, "/readyz")))
    except (OSError, HTTPException, ValueError):
        return None


def _asked(settings: HttpSettings, path: str) -> tuple[int, str]:
    """Return the status and the text of an answer of a service.

    Raises:
        OSError: nobody answers in time.
        HTTPException: what answers is no HTTP.
        ValueError: it is no text.
    """
    connection = HTTPConnection(settings.host, settings.port, timeout=_SECONDS)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read(_MOST_BYTES).decode()
    finally:
        connection.close()


def _readiness(status: int, line: str) -> tuple[bool | None, str]:
    if status == HTTPStatus.OK:
        return True, ""
    return (False, line.strip()) if status == HTTPStatus.SERVICE_UNAVAILABLE else (None, "")


def _counts(page: str) -> tuple[Mapping[str, int], int, int | None, ShadowFigures | None]:
    """Return decisions by relation, the duplicates, the lag and the shadow; see `Figures`."""
    decisions: dict[str, int] = {}
    duplicates = 0
    waiting: list[float] = []
    shadow: Counter[str] = Counter()
    shadow_is: dict[str, bool] = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            # Series of topics that are named begin with 0, whatever comes.
            if sample.name == _ARTICLES and sample.value:
                relation = sample.labels["relation"].replace("none", _NEW)
                decisions[relation] = decisions.get(relation, 0) + int(sample.value)
                duplicates += int(sample.value) if sample.labels["decision"] == "duplicate" else 0
            elif sample.name == _LAG:
                waiting.append(sample.value)
            elif sample.name == _SHADOW:
                shadow[sample.labels["disagreement"]] += int(sample.value)
            elif sample.name in {_SHADOW_ENABLED, _SHADOW_RUNNING}:
                shadow_is[sample.name] = bool(sample.value)
    lag = int(sum(waiting)) if waiting else None
    enabled, judging = shadow_is.get(_SHADOW_ENABLED, False), shadow_is.get(_SHADOW_RUNNING, False)
    return decisions, duplicates, lag, _shadow_figures(shadow, judging=judging) if enabled else None


def _shadow_figures(articles: Counter[str], *, judging: bool) -> ShadowFigures:
    disagreements = {kind: count for kind, count in articles.items() if kind != _ALIKE and count}
    return ShadowFigures(judging, articles.total(), disagreements)
