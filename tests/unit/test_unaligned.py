"""Words at any byte address equal what Python makes of the eight bytes."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stream_dedup.compiled.unaligned import put_word, word_at


@given(st.binary(min_size=8, max_size=40), st.data())
def test_a_word_is_its_bytes_the_lowest_first(content: bytes, data: st.DataObject) -> None:
    """It is read from any byte, in writable and read-only memory."""
    at = data.draw(st.integers(0, len(content) - 8))
    fixed = np.frombuffer(content, np.uint8)
    expected = int.from_bytes(content[at : at + 8], "little")
    assert word_at(fixed, at) == expected
    assert word_at(fixed.copy(), at) == expected


@given(st.binary(min_size=8, max_size=40), st.integers(0, 2**64 - 1), st.data())
def test_a_word_that_is_written_changes_its_bytes_alone(content: bytes, value: int, data: st.DataObject) -> None:
    """The eight bytes from there on are the number's, and all others are unchanged."""
    at = data.draw(st.integers(0, len(content) - 8))
    written = np.frombuffer(content, np.uint8).copy()
    put_word(written, at, np.uint64(value))
    assert written.tobytes() == content[:at] + value.to_bytes(8, "little") + content[at + 8 :]
