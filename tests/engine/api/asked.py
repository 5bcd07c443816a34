"""A client of the API on a state, and the articles in it: some samples, a hostile id and a long one.

Knows settings and tokens; knows nothing of what a test expects.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from fastapi.testclient import TestClient

from stream_dedup import Article
from stream_dedup.api.app import make_app
from stream_dedup.ask.query_service import QueryService
from stream_dedup.observe.health import Health
from stream_dedup.settings import Settings

TOKEN = "a-token-of-the-tests-0123456789"  # noqa: S105  # used only in these tests
HOSTILE = Article(
    '<script>alert("id")</script>', "正文里有<img src=x onerror=alert(1)>一张图，也有足够多的词语可以比较。" * 3
)
LONG = Article("长" * 5000, "这篇稿件的编号特别长，正文倒是平平常常，说的是一座小镇的集市如何一年年热闹起来。" * 3)
COUNT = 60
JSON = {"content-type": "application/json"}


def settings_for(directory: Path, **api: object) -> Settings:
    """Return the settings of an API on a directory."""
    # Nobody listens on port 1, so no service that happens to run here can answer.
    return Settings.model_validate(
        {
            "state": {"directory": directory},
            "http": {"port": 1},
            "api": api,
            "input": {"max_body_chars": 100_000},  # less than a request may hold
        }
    )


def client_of(directory: Path, **api: object) -> Iterator[TestClient]:
    """Yield a client of an API on a directory, until the generator is closed."""
    settings = settings_for(directory, **api)
    with QueryService(settings) as queries, asking(lambda: queries, settings, Health(1.0)) as client:
        yield client


def asking(queries: Callable[[], QueryService], settings: Settings, health: Health) -> TestClient:
    """Return a client of an API that gets its queries answered as told."""
    return TestClient(make_app(queries, settings, health), base_url="http://127.0.0.1")
