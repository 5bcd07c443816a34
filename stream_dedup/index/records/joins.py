"""Why and when a copy joined its cluster: one record per copy, in the order of the decisions.

Knows their keys and layout, and the new numbers of entries that matched; knows nothing of clusters. The records are
read to inform people, never to decide.
"""

import struct
from typing import NamedTuple

from stream_dedup.article import Link, Relation, Source
from stream_dedup.index.records.records import RELATION_NUMBERS, STORED_RELATIONS, damage_message, key_of
from stream_dedup.index.stores.store import StoreDamagedError

_SOURCES = tuple(Source)
_SOURCE_NUMBERS = {source: number for number, source in enumerate(_SOURCES)}
_JOIN = struct.Struct("<qIffbBB")
_UNKNOWN_HAMMING = -1
_UNKNOWN_SHARE = -1.0
_SIGN = 1 << 63  # added to a time, so that keys also ascend before 1970
_RENUMBERED = (1 << 64) - 1  # in place of the number of a cluster


class Join(NamedTuple):
    """A copy's link, as it was decided.

    Attributes:
        matched: number of the entry that matched, which may no longer exist.
        epoch: number of the IDF epoch of the fingerprint.
        jaccard: see `Link`.
        containment: see `Link`.
        hamming: see `Link`.
        relation: see `Link`.
        source: see `Link`.
    """

    matched: int
    epoch: int
    jaccard: float | None
    containment: float | None
    hamming: int | None
    relation: Relation | None
    source: Source

    @classmethod
    def unpack(cls, packed: bytes) -> "Join":
        """Return the join that bytes hold.

        Raises:
            StoreDamagedError: they are cut short, or are not a join.
        """
        try:
            matched, epoch, jaccard, containment, hamming, relation, source = _JOIN.unpack(packed)
            return cls(
                matched,
                epoch,
                None if jaccard < 0 else jaccard,
                None if containment < 0 else containment,
                None if hamming == _UNKNOWN_HAMMING else hamming,
                STORED_RELATIONS[relation],
                _SOURCES[source],
            )
        except (struct.error, IndexError):
            raise StoreDamagedError(damage_message("the record of why an article is a copy", packed)) from None


def packed_join(link: Link, matched: int, epoch: int) -> bytes:
    """Return a link as the bytes that `Join` unpacks.

    Args:
        link: link of a copy.
        matched: number of the entry that matched.
        epoch: number of the IDF epoch of the fingerprint.
    """
    return _JOIN.pack(
        matched,
        epoch,
        _UNKNOWN_SHARE if link.jaccard is None else link.jaccard,
        _UNKNOWN_SHARE if link.containment is None else link.containment,
        _UNKNOWN_HAMMING if link.hamming is None else link.hamming,
        RELATION_NUMBERS[link.relation],
        _SOURCE_NUMBERS[link.source],
    )


def join_key(cluster: int, decided_ms: int, name: str) -> bytes:
    """Return the key of a copy's record, without a generation.

    Args:
        cluster: number of its cluster.
        decided_ms: the stream's time at the decision, milliseconds since 1970 in UTC.
        name: name of the copy.
    """
    return key_of(cluster) + key_of(decided_ms + _SIGN) + name.encode()


def renumbered_key(entry: int) -> bytes:
    """Return the key, without a generation, under which the new number of a renumbered entry is kept.

    Args:
        entry: its old number, which links may name as the one that matched.
    """
    return key_of(_RENUMBERED) + key_of(entry)


def of_join_key(key: bytes) -> tuple[int, int, str]:
    """Return the cluster, the time and the name in a key without a generation; see `join_key`."""
    return int.from_bytes(key[:8]), int.from_bytes(key[8:16]) - _SIGN, key[16:].decode()
