"""Fixtures of the tests of runs."""

import pytest

from stream_dedup.index.runs import schedule, shelf
from tests.unit.runs.walking import YOUNG


@pytest.fixture
def small_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make runs start at 4 entries and grow to 64 at most."""
    monkeypatch.setattr(shelf, "YOUNG_ENTRIES", YOUNG)
    monkeypatch.setattr(schedule, "LARGEST_ENTRIES", 64)
