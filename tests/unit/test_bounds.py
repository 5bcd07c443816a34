"""Limits of texts that are asked about, to the character.

Knows texts; knows nothing of who asks.
"""

import pytest

from stream_dedup.ask.bounds import TooLongError, check_length, quoted


def test_text_may_be_as_long_as_the_limit() -> None:
    """One character more is an error that names the text, its length and the setting."""
    check_length("the body", "字" * 50, 50, "input.max_characters")
    with pytest.raises(TooLongError, match=r"^the body has 51 characters: input\.max_characters = 50 is the limit$"):
        check_length("the body", "字" * 51, 50, "input.max_characters")


def test_ids_are_quoted_to_two_hundred_characters() -> None:
    """Longer ones are cut, visibly; control characters are escaped."""
    assert quoted("a" * 200) == f"'{'a' * 200}'"
    assert quoted("a" * 201) == f"'{'a' * 200}'…"
    assert quoted("a\n\x1b[31m") == r"'a\n\x1b[31m'"
