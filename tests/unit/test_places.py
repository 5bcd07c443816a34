"""Updates to a state about topics with new identities."""

import pytest

from stream_dedup.stream.kafka.places import IDENTITY, Place, identity_updates

_POSITIONS: dict[Place, int] = {("a", IDENTITY): 7, ("a", 0): 30, ("a", 1): 40, ("b", 0): 50}


@pytest.mark.parametrize(
    ("identities", "places", "news"),
    [
        ({}, [("a", 2)], {}),
        ({"a": 7}, [("a", 2)], {}),
        ({"b": 9, "c": 8}, [], {("b", IDENTITY): 9, ("c", IDENTITY): 8}),
        ({"a": 6}, [("a", 2), ("b", 1)], {("a", IDENTITY): 6, ("a", 0): 0, ("a", 1): 0, ("a", 2): 0}),
    ],
    ids=["not told", "as it was", "not known before", "made anew"],
)
def test_only_a_topic_that_was_made_anew_begins_again(
    identities: dict[str, int], places: list[Place], news: dict[Place, int]
) -> None:
    """A recreated topic restarts in each partition, known or read since; of others only new identities are recorded."""
    assert identity_updates(identities, _POSITIONS, places) == news
