"""Of articles that cannot be prepared together, those at fault are left out, and only those."""

from collections.abc import Callable, Sequence

import pytest

from stream_dedup.engine.prepared import prepared_without_faulty


def _refusing(*faulty: str, error: type[Exception] = ValueError) -> Callable[[Sequence[str]], None]:
    def prepare(items: Sequence[str]) -> None:
        for item in items:
            if item in faulty:
                raise error(item)

    return prepare


def test_those_at_fault_are_told_by_their_places() -> None:
    """The others are prepared."""
    assert prepared_without_faulty(["a", "b"], _refusing()) == (None, {})
    _, faults = prepared_without_faulty(["a", "b", "c", "b"], _refusing("b"))
    assert {place: str(fault) for place, fault in faults.items()} == {1: "b", 3: "b"}
    _, faults = prepared_without_faulty(["b"], _refusing("b"))
    assert list(faults) == [0]


@pytest.mark.parametrize("error", [MemoryError, OSError])
def test_faults_of_the_machine_are_no_articles(error: type[Exception]) -> None:
    """They would meet any other as well."""
    with pytest.raises(error):
        prepared_without_faulty(["a", "b"], _refusing("b", error=error))


def test_fault_that_meets_all_is_none_of_theirs() -> None:
    """A broken installation must not turn the stream into dead letters."""
    with pytest.raises(ValueError, match="a"):
        prepared_without_faulty(["a", "b"], _refusing("a", "b"))


def test_fault_of_none_alone_is_raised() -> None:
    """Nobody knows which of them to leave out."""

    def prepare(items: Sequence[str]) -> None:
        if len(items) > 1:
            raise ValueError("together")

    with pytest.raises(ValueError, match="together"):
        prepared_without_faulty(["a", "b"], prepare)
