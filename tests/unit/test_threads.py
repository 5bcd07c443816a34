"""Promises of dividing a batch among threads: the outcome is that of doing it at once."""

import threading
from collections.abc import Sequence
from dataclasses import fields

import numpy as np
import pytest

from stream_dedup import EngineSettings
from stream_dedup.fingerprint.features import Features, Fingerprinter
from stream_dedup.fingerprint.threads import Threads
from tests.engine.samples import articles


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("items", [0, 1, 63, 64, 127, 128, 1_000])
def test_parts_are_consecutive_and_in_order(count: int, items: int) -> None:
    """The parts, one behind the other, are the items; none is smaller than 64 unless it is the only one."""
    parts = Threads(count).map(list, range(items))
    assert [item for part in parts for item in part] == [*range(items)]
    assert 1 <= len(parts) <= count
    assert len(parts) == 1 or min(map(len, parts)) >= 64


def test_parts_are_worked_on_at_the_same_time() -> None:
    """Each of three parts waits for the other two, in a thread of its own."""
    meeting = threading.Barrier(3, timeout=30)

    def work(_part: Sequence[int]) -> int:
        meeting.wait()
        return threading.get_ident()

    assert len(set(Threads(3).map(work, range(300)))) == 3


def test_error_of_a_part_is_raised() -> None:
    """What goes wrong in another thread goes wrong for the caller."""

    def work(part: Sequence[int]) -> int:
        return 1 // (200 - part[-1] - 1)

    with pytest.raises(ZeroDivisionError):
        Threads(2).map(work, range(200))


def test_features_do_not_depend_on_threads() -> None:
    """Features of a batch in one, two and three parts are the same to the last value, titles among them."""
    batch = list(articles())[:400]
    weights = {"profile": "paper2020"}
    one, *others = (
        Fingerprinter(EngineSettings.model_validate({"weights": weights, "text": {"threads": threads}})).features(batch)
        for threads in (1, 2, 3)
    )
    for other in others:
        _assert_equal(one, other)


def _assert_equal(one: object, other: object) -> None:
    if isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, other)
    elif isinstance(one, tuple) and isinstance(other, tuple):
        for value, its in zip(one, other, strict=True):
            _assert_equal(value, its)
    else:
        assert isinstance(one, Features) or fields(one)  # type: ignore[arg-type]  # a dataclass it is
        for field in fields(one):  # type: ignore[arg-type]  # the same
            _assert_equal(getattr(one, field.name), getattr(other, field.name))
