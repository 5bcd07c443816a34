"""A state that the API's tests ask about, and clients with and without a token.

Knows nothing of what is asked.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from stream_dedup import Deduplicator
from tests.engine.api.asked import COUNT, HOSTILE, LONG, TOKEN, client_of, settings_for
from tests.engine.samples import articles


@pytest.fixture(scope="session")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state with some articles, one with a hostile id, one with a long id; nothing changes it."""
    directory = tmp_path_factory.mktemp("api") / "state"
    with Deduplicator(directory, settings_for(directory)) as engine:
        engine.process([*articles()[:COUNT], HOSTILE, LONG])
    return directory


@pytest.fixture(scope="module")
def client(directory: Path) -> Iterator[TestClient]:
    """The API without a token."""
    yield from client_of(directory)


@pytest.fixture(scope="module")
def locked(directory: Path) -> Iterator[TestClient]:
    """The API with a token and a limit of 2 KiB."""
    yield from client_of(directory, token=TOKEN, max_body_bytes=2048)
