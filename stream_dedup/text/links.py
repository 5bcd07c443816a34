"""Links in normal texts, and texts without them.

Knows what a link begins with and consists of; knows nothing of sentences.
"""

import numpy as np

from stream_dedup.arrays import U32
from stream_dedup.compiled.hashing import code_points
from stream_dedup.compiled.kernel import kernel

LINK_MARKS = ":w"  # each link has one of these before `//` or before `ww`
_TWICE = (np.uint32(ord("/")), np.uint32(ord("w")))
_HTTP, _SECURE, _HOST, _WORLD_WIDE = (code_points(part).copy() for part in ("http", "s", "://", "www."))
_BLANK, _FIRST_VISIBLE, _LAST_VISIBLE = np.uint32(ord(" ")), np.uint32(ord("!")), np.uint32(ord("~"))


@kernel
def may_link(points: U32, i: int) -> bool:
    """Return whether character i, one of `LINK_MARKS`, may be part of `://` or `www.`."""
    return bool(i + 2 < len(points) and points[i + 1] == points[i + 2] and points[i + 1] in _TWICE)


@kernel
def without_links(points: U32) -> U32:
    """Return a text with a blank in place of each link: `http://`, `https://` or `www.`, then visible ASCII."""
    kept, used, i = np.empty(len(points), np.uint32), 0, 0
    while i < len(points):
        stop = _end_of_link(points, i)
        kept[used] = points[i] if stop == i else _BLANK
        used, i = used + 1, max(stop, i + 1)
    return kept[:used]


@kernel
def _end_of_link(points: U32, i: int) -> int:
    """Return where the link that begins at character i ends; i itself if none begins there."""
    start = _behind(points, i, _WORLD_WIDE)
    if start == i and _behind(points, i, _HTTP) > i:
        scheme = _behind(points, i + len(_HTTP), _SECURE)
        host = _behind(points, scheme, _HOST)
        start = host if host > scheme else i
    stop = start
    while start > i and stop < len(points) and _FIRST_VISIBLE <= points[stop] <= _LAST_VISIBLE:
        stop += 1
    return stop if stop > start else i


@kernel
def _behind(points: U32, i: int, part: U32) -> int:
    """Return the position after `part` if it is at character i, else i itself."""
    for place in range(len(part)):
        if i + place >= len(points) or points[i + place] != part[place]:
            return i
    return i + len(part)
