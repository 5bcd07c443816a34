"""Fixtures shared by the unit tests: one fingerprinter, real texts, a store on disk, commands, the hash in Python.

Hypothesis draws the same examples in every run, so a failure is due to the code and not to chance.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import settings
from typer.testing import CliRunner

from deploy.demo.samples.corpus import BaseText, base_texts
from stream_dedup.cli.main import app
from stream_dedup.cli.terminal import out
from stream_dedup.engine.dedup import Deduplicator
from stream_dedup.fingerprint.features import Fingerprinter
from stream_dedup.index.stores.store import Family, Put
from stream_dedup.settings import EngineSettings
from tests.unit.commands import Invoke
from tests.unit.stores import KEYS, largest, rocks_in, value_of

_MASK = (1 << 64) - 1

settings.register_profile("unit", deadline=None, max_examples=60, derandomize=True, database=None)
settings.load_profile("unit")


@pytest.fixture(scope="session")
def fingerprinter() -> Fingerprinter:
    """Return a fingerprinter with the default settings; it is stateless, so all tests share it."""
    return Fingerprinter(EngineSettings())


@pytest.fixture
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Render tables and help texts 200 columns wide, so that no path is wrapped.

    A console with an explicit width ignores COLUMNS, while help texts follow only COLUMNS, so both are set.
    """
    monkeypatch.setattr(out, "width", 200)
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture(scope="session")
def texts() -> list[BaseText]:
    """Return some 150 hand-written articles and posts: Chinese, mixed and English."""
    return base_texts()


@pytest.fixture(scope="session")
def bodies(texts: list[BaseText]) -> list[str]:
    """Return the bodies of these texts."""
    return [text.body for text in texts]


@pytest.fixture(scope="session")
def hash_of() -> Callable[[str], int]:
    """Return FNV-1a over code points with splitmix64's finaliser, in Python integers."""

    def hashed(text: str) -> int:
        value = 0xCBF29CE484222325
        for character in text:
            value = (value ^ ord(character)) * 0x100000001B3 & _MASK
        value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        value = (value ^ value >> 27) * 0x94D049BB133111EB & _MASK
        return value ^ value >> 31 or 1

    return hashed


@pytest.fixture(scope="session")
def cached_fingerprinter() -> Callable[[EngineSettings], Fingerprinter]:
    """Return a function that makes one fingerprinter per settings and reuses it, saving a second per test."""
    made: dict[str, Fingerprinter] = {}

    def make(settings: EngineSettings) -> Fingerprinter:
        key = settings.model_dump_json(include={"text", "weights", "sketch", "landmarks"})
        return made.setdefault(key, made.get(key) or Fingerprinter(settings))

    return make


@pytest.fixture
def make_engine(
    cached_fingerprinter: Callable[[EngineSettings], Fingerprinter], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Deduplicator]]:
    """Return a function that makes in-memory engines from groups of settings; they are closed after the test."""
    monkeypatch.setattr("stream_dedup.engine.parts.Fingerprinter", cached_fingerprinter)
    with ExitStack() as stack:

        def make(**groups: object) -> Deduplicator:
            return stack.enter_context(Deduplicator(settings=EngineSettings.model_validate(groups)))

        yield make


@pytest.fixture
def invoke(cached_fingerprinter: Callable[[EngineSettings], Fingerprinter], monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Return a function that runs a command in this process, without settings in the environment."""
    for module in ("parts", "explain"):
        monkeypatch.setattr(f"stream_dedup.engine.{module}.Fingerprinter", cached_fingerprinter)
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def flushed(tmp_path: Path) -> Path:
    """Return a directory whose pairs are in one SST file, since a store that closes flushes its log."""
    store = rocks_in(tmp_path)
    store.write([Put(Family.ENTRIES, key, value_of(key)) for key in KEYS])
    store.close()
    assert largest(tmp_path, "*.sst").stat().st_size > 50_000
    return tmp_path
