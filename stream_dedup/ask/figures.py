"""What a running service says of itself on its own port.

Knows names of metrics and how they are read; knows nothing of the state.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from prometheus_client.parser import text_string_to_metric_families

from stream_dedup.settings import HttpSettings

_SECONDS = 1.0
_MOST_BYTES = 8 << 20
_NEW = "new"  # what articles without a relation are called
_ARTICLES, _LAG = "stream_dedup_articles_total", "stream_dedup_consumer_lag_messages"
_QUERY = urlencode([("name[]", _ARTICLES), ("name[]", _LAG)])  # the whole page takes both sides some milliseconds


@dataclass(frozen=True, slots=True)
class Figures:
    """Some metrics of a service.

    Attributes:
        decisions: articles judged since it started, by relations that came, `new` for none.
        lag: messages that wait in the input; None where that is not known yet.
    """

    decisions: Mapping[str, int]
    lag: int | None


def figures_of(settings: HttpSettings) -> Figures | None:
    """Return what the service of some settings shows; None where none answers."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    request = Request(f"http://{host}:{settings.port}/metrics?{_QUERY}")  # always http
    try:
        with urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310  # the same
            return _figures(answer.read(_MOST_BYTES).decode())
    except (OSError, HTTPException, ValueError):
        return None


def _figures(page: str) -> Figures:
    decisions: dict[str, int] = {}
    waiting: list[float] = []
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            # Series of topics that are named begin with 0, whatever comes.
            if sample.name == _ARTICLES and sample.value:
                relation = sample.labels["relation"].replace("none", _NEW)
                decisions[relation] = decisions.get(relation, 0) + int(sample.value)
            elif sample.name == _LAG:
                waiting.append(sample.value)
    return Figures(decisions, int(sum(waiting)) if waiting else None)
