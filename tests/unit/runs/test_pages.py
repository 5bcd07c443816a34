"""Files written in whole huge pages: what is written, and in which pieces."""

import errno
import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_dedup.index.runs.pages import HUGE_PAGE, HugePages

_DATA = np.random.default_rng(1).integers(0, 256, 6 * HUGE_PAGE, np.uint8).tobytes()


class _Pieces:
    """A file that keeps each piece written to it."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    def write(self, piece: bytes) -> None:
        self.pieces.append(bytes(piece))


@given(cuts=st.lists(st.integers(0, len(_DATA)), max_size=6).map(sorted), stop=st.integers(0, len(_DATA)))
def test_all_is_written_in_whole_pages(cuts: list[int], stop: int) -> None:
    """However it comes, each piece but the last is one huge page, and nothing is lost."""
    file = _Pieces()
    pages = HugePages(file)  # type: ignore[arg-type]  # as much of a file as is used
    bounds = [0, *(cut for cut in cuts if cut < stop), stop]
    for first, last in pairwise(bounds):
        pages.write(memoryview(_DATA)[first:last])
    pages.finish()
    assert b"".join(file.pieces) == _DATA[:stop]
    *whole, rest = [len(piece) for piece in file.pieces]
    assert set(whole) <= {HUGE_PAGE}
    assert rest < HUGE_PAGE


def test_a_full_disk_is_told() -> None:
    """The error of the file reaches the writer."""
    with Path("/dev/full").open("wb", buffering=0) as full, pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        HugePages(full).write(_DATA)
