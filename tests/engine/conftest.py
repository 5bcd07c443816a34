"""What the engine's tests share: dictionaries, read once for all engines with the same settings.

This makes an engine almost free to create, so tests can create hundreds.
"""

from collections.abc import Iterator

import pytest

from stream_dedup import EngineSettings
from stream_dedup.fingerprint.features import Fingerprinter

_MADE: dict[str, Fingerprinter] = {}


def _fingerprinter(settings: EngineSettings) -> Fingerprinter:
    key = settings.model_dump_json(include={"text", "weights", "sketch", "landmarks"})
    if key not in _MADE:
        _MADE[key] = Fingerprinter(settings)
    return _MADE[key]


@pytest.fixture(autouse=True, scope="session")
def shared_fingerprinters() -> Iterator[None]:
    """Let all engines with the same settings share one fingerprinter: it has no mutable state."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("stream_dedup.engine.parts.Fingerprinter", _fingerprinter)
        yield
