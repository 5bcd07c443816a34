"""Run files for the tests: written to a directory, opened, damaged.

Knows how a run is written and opened; does not know what a test expects.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from stream_dedup.index.runs.blocks import KeyedPostings, no_postings
from stream_dedup.index.runs.run import Run, RunWriter, bounds_of, open_run

DETAIL_BYTES = (0, 1, 8)  # those of the kinds in the index


def write_run(path: Path, first: int, stop: int, sections: Sequence[Sequence[KeyedPostings]]) -> None:
    """Write a run with these parts of sections, whose postings carry 0, 1 and 8 bytes."""
    with path.open("wb") as file:
        writer = RunWriter(file, first, stop)
        for parts, detail_bytes in zip(sections, DETAIL_BYTES, strict=False):
            whole = KeyedPostings(
                *(np.concatenate([no_postings()[column], *(part[column] for part in parts)]) for column in range(3))
            )
            writer.section(parts, bounds_of(whole), detail_bytes)
        writer.finish()


@contextmanager
def opened(path: Path, *, shared: bool = False) -> Iterator[Run]:
    """Open a run, and close it afterwards."""
    run = open_run(path.name, os.open(path, os.O_RDONLY), shared=shared)
    try:
        yield run
    finally:
        run.close()


def open_files() -> int:
    """Return the number of files this process has open, without sockets, which other threads may open or close."""
    return sum(descriptor.is_file() for descriptor in Path("/proc/self/fd").iterdir())


def flip(path: Path, place: int) -> None:
    """Corrupt the byte at a position of a file."""
    with path.open("r+b") as file:
        file.seek(place)
        (byte,) = file.read(1)
        file.seek(place)
        file.write(bytes([byte ^ (1 + place % 255)]))
