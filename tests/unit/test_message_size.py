"""Sizes of messages, as they arrive."""

import pytest
from confluent_kafka import Message

from stream_dedup.stream.kafka.headers import size_of


@pytest.mark.parametrize(
    ("given", "size"),
    [
        ({"value": b"12345"}, 5),
        ({"value": None, "key": b"id"}, 2),
        ({"value": b"12345", "key": "甲".encode()}, 8),
    ],
)
def test_size_is_that_of_value_and_key(given: dict[str, bytes], size: int) -> None:
    """Either may be missing."""
    assert size_of(Message(topic="in", **given)) == size  # type: ignore[arg-type]


def test_size_includes_headers() -> None:
    """They may hold as much as the value: names, contents and a few bytes for each; a header may have no content."""
    headers = [("甲", b"x" * 1000), ("empty", None)]
    size = size_of(Message(topic="in", value=b"12345", headers=headers))  # type: ignore[arg-type]
    assert 5 + 3 + 1000 + 5 <= size <= 5 + 3 + 1000 + 5 + 2 * 8
