"""Records of why a copy joined its cluster: bytes, keys and their order."""

import struct

import pytest

from stream_dedup.article import Link, Relation, Source
from stream_dedup.index.records.joins import Join, join_key, of_join_key, packed_join
from stream_dedup.index.stores.store import StoreDamagedError


@pytest.mark.parametrize("source", list(Source))
@pytest.mark.parametrize("relation", list(Relation))
def test_a_join_says_again_what_its_link_said(relation: Relation, source: Source) -> None:
    """This holds for any relation and any index that found the match."""
    link = Link("original", "matched", relation, 0.75, 0.875, 17, source)
    assert Join.unpack(packed_join(link, 9, 3)) == Join(9, 3, 0.75, 0.875, 17, relation, source)


def test_what_a_link_does_not_know_its_join_does_not_know_either() -> None:
    """Unknown values stay unknown and do not become 0."""
    link = Link("original", "matched", Relation.EXACT, None, None, None, Source.CONTENT)
    join = Join.unpack(packed_join(link, -1, 0))
    assert (join.jaccard, join.containment, join.hamming, join.matched) == (None, None, None, -1)


def test_no_distance_and_the_largest_are_told_from_an_unknown_one() -> None:
    """Distances are 0 to 64, and shares 0 to 1: two texts may have nothing in common."""
    for hamming, share in ((0, 1.0), (64, 0.0)):
        link = Link("original", "matched", Relation.NEAR, share, share, hamming, Source.SIMHASH)
        join = Join.unpack(packed_join(link, 1, 2))
        assert (join.hamming, join.jaccard, join.containment) == (hamming, share, share)


@pytest.mark.parametrize("packed", [b"", b"\x00" * 22, b"\x00" * 24, struct.pack("<qIffbBB", 1, 1, 1, 1, 1, 99, 0)])
def test_damaged_joins_are_told(packed: bytes) -> None:
    """A truncated record or an unknown relation is an error of its own kind."""
    with pytest.raises(StoreDamagedError, match="why an article is a copy"):
        Join.unpack(packed)


def test_keys_ascend_by_cluster_and_time_also_before_1970() -> None:
    """So a cluster's copies are read in the order of the decisions."""
    parts = [(1, -5, "b"), (1, 0, "a"), (1, 1_700_000_000_000, "乙"), (2, -(1 << 62), "a")]
    keys = [join_key(*part) for part in parts]
    assert keys == sorted(keys)
    assert [of_join_key(key) for key in keys] == parts
