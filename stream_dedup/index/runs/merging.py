"""Merges consecutive runs into one, a stretch of keys at a time.

Knows stretches of keys; knows nothing of which runs are to be merged.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import BinaryIO

from stream_dedup.index.runs.blocks import KEY_BITS, KeyedPostings, block_bits_of
from stream_dedup.index.runs.order import merged
from stream_dedup.index.runs.postings import PostingKind
from stream_dedup.index.runs.run import Run, RunWriter, SectionBounds
from stream_dedup.index.runs.section import Section

STRETCH_BITS = 10  # 2^10 blocks are merged at a time


def merge_runs(
    file: BinaryIO, runs: Sequence[Run], kinds: Sequence[PostingKind], floor: int, look: Callable[[], None]
) -> None:
    """Write a run that holds the postings of several consecutive runs.

    Args:
        file: an empty file.
        runs: the oldest first.
        kinds: kinds of their sections.
        floor: postings of entries with smaller numbers are left out.
        look: called before each stretch, which takes some milliseconds; may raise to end the merge.

    Raises:
        StoreDamagedError: one of them is damaged.
        OSError: the file cannot be written.
    """
    writer = RunWriter(file, runs[0].first, runs[-1].stop)
    for section, kind in enumerate(kinds):
        most = merged_bounds(run.sections[section] for run in runs)
        writer.section(_merged(runs, section, kind, floor, most, look), most, kind.detail_bytes)
    writer.finish()


def merged_bounds(sections: Iterable[Section]) -> SectionBounds:
    """Return the largest bounds that a section merged from several may have."""
    extents = [(section.keys, section.postings, section.layout.zero_bits) for section in sections]
    keys, postings, zero_bits = zip(*extents, strict=True)
    return SectionBounds(sum(keys), sum(postings), min(zero_bits))


def _merged(
    runs: Sequence[Run], section: int, kind: PostingKind, floor: int, most: SectionBounds, look: Callable[[], None]
) -> Iterator[KeyedPostings]:
    for begin, end in key_ranges(block_bits_of(most.postings)):
        look()
        yield merged([run.postings_between(section, begin, end) for run in runs], kind.cap, floor)


def key_ranges(block_bits: int) -> Iterator[tuple[int, int | None]]:
    """Yield the first key of each stretch of blocks, and the first key after it, None for the last stretch."""
    bits = max(0, block_bits - STRETCH_BITS)
    begins = [stretch << (KEY_BITS - bits) for stretch in range(1 << bits)]
    return zip(begins, [*begins[1:], None], strict=True)
