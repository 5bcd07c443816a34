"""What a running service says of itself on its own port.

Knows names of metrics, the probe, how they are read and how often; knows nothing of the state.
"""

import math
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlencode

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

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

_Samples = defaultdict[str, list[Sample]]  # by name


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


class FiguresReader:
    """Reads the figures of a service, once a second at most: each time takes some milliseconds of its stream.

    Safe between threads.

    Args:
        settings: of its port.
    """

    def __init__(self, settings: HttpSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._read_at = -math.inf  # by `time.monotonic`
        self._figures: Figures | None = None

    def read(self) -> Figures | None:
        """Return what the service shows, a second old at most; None where none answers."""
        with self._lock:
            if time.monotonic() - self._read_at >= _FRESH_SECONDS:
                self._figures = figures_of(self._settings)
                self._read_at = time.monotonic()
            return self._figures


def figures_of(settings: HttpSettings) -> Figures | None:
    """Return what the service of some settings shows; None where none answers."""
    try:
        status, page = _get(settings, f"/metrics?{_QUERY}")
        if status != HTTPStatus.OK:
            return None
        return _figures(_samples(page), *_readiness(*_get(settings, "/readyz")))
    except (OSError, HTTPException, ValueError):
        return None


def _get(settings: HttpSettings, path: str) -> tuple[int, str]:
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


def _samples(page: str) -> _Samples:
    """Return the samples on a page of metrics."""
    samples: _Samples = defaultdict(list)
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            samples[sample.name].append(sample)
    return samples


def _figures(samples: _Samples, ready: bool | None, not_ready: str) -> Figures:  # noqa: FBT001  # as `_readiness` tells
    decisions: Counter[str] = Counter()
    for sample in samples[_ARTICLES]:
        # Series of topics that are named begin with 0, whatever comes.
        if sample.value:
            decisions[sample.labels["relation"].replace("none", _NEW)] += int(sample.value)
    waiting = [sample.value for sample in samples[_LAG]]
    return Figures(
        decisions=decisions,
        duplicates=sum(int(one.value) for one in samples[_ARTICLES] if one.labels["decision"] == "duplicate"),
        lag=int(sum(waiting)) if waiting else None,
        shadow=_shadow(samples) if _is_on(samples[_SHADOW_ENABLED]) else None,
        ready=ready,
        not_ready=not_ready,
    )


def _shadow(samples: _Samples) -> ShadowFigures:
    articles: Counter[str] = Counter()
    for sample in samples[_SHADOW]:
        articles[sample.labels["disagreement"]] += int(sample.value)
    disagreements = {kind: count for kind, count in articles.items() if kind != _ALIKE and count}
    return ShadowFigures(_is_on(samples[_SHADOW_RUNNING]), articles.total(), disagreements)


def _is_on(samples: Sequence[Sample]) -> bool:
    return any(sample.value for sample in samples)
