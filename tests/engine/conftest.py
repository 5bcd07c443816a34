"""What the engine's tests share: dictionaries that are read once, for all engines of the same settings.

An engine is then made in a moment, and hundreds of them may be.
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
    """Let all engines of the same settings have one fingerprinter: it has no state that changes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("stream_dedup.engine.parts.Fingerprinter", _fingerprinter)
        yield
