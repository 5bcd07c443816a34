"""Figures that a running service publishes on its own port.

Knows the names of metrics, the readiness probe, and how and how often they are read; knows nothing of the state.
"""

import math
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlencode

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from stream_dedup.settings import HttpSettings

_SECONDS = 1.0
_FRESH_SECONDS = 1.0
_MOST_BYTES = 8 << 20
_NEW = "new"  # the name for articles without a relation
_ARTICLES, _LAG = "stream_dedup_articles_total", "stream_dedup_consumer_lag_messages"
_SHADOW, _SHADOW_ENABLED = "stream_dedup_shadow_articles_total", "stream_dedup_shadow_enabled"
_SHADOW_RUNNING = "stream_dedup_shadow_running"
_ALIKE = "none"  # the label value of agreement
_ASKED = (_ARTICLES, _LAG, _SHADOW, _SHADOW_ENABLED, _SHADOW_RUNNING)
_QUERY = urlencode([("name[]", name) for name in _ASKED])  # the whole page would cost both sides some milliseconds

_Samples = defaultdict[str, list[Sample]]  # by name


@dataclass(frozen=True, slots=True)
class ShadowFigures:
    """What the shadow of a service has decided so far.

    Attributes:
        judging: whether it is judging now.
        articles: number of articles that it has judged since the service started.
        disagreements: number of those that it judged differently, by kind; kinds that did not occur are missing.
    """

    judging: bool
    articles: int
    disagreements: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Figures:
    """A service's figures; by default, those of one that does not answer.

    Attributes:
        decisions: number of articles judged since it started, by relation, `new` for none; relations that did not
            occur are missing.
        duplicates: number of those that are duplicates; None if unknown.
        lag: messages waiting in the input; None if not yet known.
        shadow: None if no shadow is enabled.
        ready: whether it reads its input, or follows it closely; None if it does not say.
        not_ready: why it is not ready, in the words of its probe; else empty.
    """

    decisions: Mapping[str, int] = field(default_factory=dict)
    duplicates: int | None = None
    lag: int | None = None
    shadow: ShadowFigures | None = None
    ready: bool | None = None
    not_ready: str = ""


class FiguresReader:
    """Reads the figures of a service, at most once a second: each time costs its stream some milliseconds.

    Thread-safe.

    Args:
        settings: the service's host and port.
    """

    def __init__(self, settings: HttpSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._read_at = -math.inf  # by `time.monotonic`
        self._figures: Figures | None = None

    def read(self) -> Figures | None:
        """Return the service's figures, at most a second old; None if no service answers."""
        with self._lock:
            if time.monotonic() - self._read_at >= _FRESH_SECONDS:
                self._figures = figures_of(self._settings)
                self._read_at = time.monotonic()
            return self._figures


def figures_of(settings: HttpSettings) -> Figures | None:
    """Return the figures of the service at this host and port; None if none answers."""
    try:
        status, page = _get(settings, f"/metrics?{_QUERY}")
        if status != HTTPStatus.OK:
            return None
        return _figures(_samples(page), *_readiness(*_get(settings, "/readyz")))
    except (OSError, HTTPException, ValueError):
        return None


def _get(settings: HttpSettings, path: str) -> tuple[int, str]:
    """Return the status and the text of a service's answer.

    Raises:
        OSError: nothing answers in time.
        HTTPException: the answer is not HTTP.
        ValueError: it is not text.
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


def _figures(samples: _Samples, ready: bool | None, not_ready: str) -> Figures:  # noqa: FBT001  # as `_readiness` returns it
    decisions: Counter[str] = Counter()
    for sample in samples[_ARTICLES]:
        # The series of configured topics exist from the start, with the value 0.
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
