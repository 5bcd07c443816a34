"""How one text relates to another: exact, near, contained or not at all, by sketches, numbers and places.

Knows two rows of fingerprints and the thresholds; knows nothing of candidates or of any other text to compare with.
"""

from typing import NamedTuple

import numpy as np

from stream_dedup.arrays import I64, U32, Bool
from stream_dedup.article import Relation
from stream_dedup.compiled.kernel import kernel
from stream_dedup.fingerprint.particulars import PARTICULAR_BITS
from stream_dedup.fingerprint.simhash import popcount
from stream_dedup.fingerprint.sketch import resemblance
from stream_dedup.index.entries.entries import Rows
from stream_dedup.index.lookup.sharing import Sharing, sharing_of
from stream_dedup.settings import EngineSettings

NONE, EXACT, NEAR, CONTAINED, CONTAINS = 0, 1, 2, 3, 4
RELATIONS = (None, Relation.EXACT, Relation.NEAR, Relation.CONTAINED, Relation.CONTAINS)


class Limits(NamedTuple):
    """The thresholds of verification; see `VerifySettings` for each."""

    near_jaccard: float
    min_containment: float
    cut_containment: float
    cut_jaccard: float
    min_grams: int
    numbers_overlap: float
    numbers_min: int
    places_min: int
    numbers_jaccard: float
    numbers_grams: int
    variant_jaccard: float
    chain_jaccard: float
    max_distance: int
    sharing: Sharing


class Match(NamedTuple):
    """How two texts compare.

    Attributes:
        relation: `NONE` to `CONTAINS`: relation of the first to the second.
        jaccard: estimated Jaccard.
        containment: estimated containment.
        hamming: distance between the fingerprints.
    """

    relation: int
    jaccard: float
    containment: float
    hamming: int


class _Common(NamedTuple):
    """How many of their numbers, or places, two texts have in common at most.

    Attributes:
        fewer: how many the text with fewer of them has.
        same: how many of those the other may have too; if that is estimated, as many as is plausible.
    """

    fewer: float
    same: float


def limits_of(settings: EngineSettings) -> Limits:
    """Return the thresholds in the settings."""
    verify = settings.verify
    return Limits(
        verify.near_jaccard,
        verify.min_containment,
        verify.cut_containment,
        verify.cut_jaccard,
        verify.min_grams,
        verify.numbers_overlap,
        verify.numbers_min,
        verify.places_min,
        verify.numbers_jaccard,
        verify.numbers_grams,
        verify.variant_jaccard,
        verify.chain_jaccard,
        settings.simhash.max_distance,
        sharing_of(settings),
    )


def duplicates_of(settings: EngineSettings) -> Bool:
    """Return which of the relations `NONE` to `CONTAINS` make an article a duplicate, shape (5,)."""
    return np.array([relation in settings.verify.duplicates for relation in RELATIONS], np.bool_)


@kernel
def compare(rows: Rows, a: int, b: int, limits: Limits) -> Match:
    """Return how text a relates to text b."""
    hamming = popcount(rows.fingerprints[a] ^ rows.fingerprints[b])
    if rows.contents[a] == rows.contents[b]:
        return Match(EXACT, 1.0, 1.0, hamming)
    jaccard, containment, _ = resemblance(
        rows.sketches[a], rows.lengths[a], rows.sizes[a], rows.sketches[b], rows.lengths[b], rows.sizes[b]
    )
    relation = _relation(jaccard, containment, rows.sizes[a], rows.sizes[b], limits)
    if relation != NONE and jaccard < limits.numbers_jaccard:
        changed = 2.0 * (1.0 - containment) * min(rows.sizes[a], rows.sizes[b])
        if _other_particulars(rows, a, b, changed, limits):
            relation = NONE
    return Match(relation, jaccard, containment, hamming)


@kernel
def _relation(jaccard: float, containment: float, size_a: int, size_b: int, limits: Limits) -> int:
    if min(size_a, size_b) < limits.min_grams:
        return NONE
    if max(jaccard / limits.near_jaccard, containment / limits.min_containment) < 1.0:
        return NONE
    # |smaller| / |larger| is at most J / C: if J is well below C, one text is a part of the other.
    cut = containment >= limits.cut_containment and jaccard < limits.cut_jaccard
    if jaccard >= limits.near_jaccard and not cut:
        return NEAR
    return CONTAINED if size_a <= size_b else CONTAINS


@kernel
def _other_particulars(rows: Rows, a: int, b: int, changed: float, limits: Limits) -> bool:
    """Tell whether two texts differ in their numbers or places: bulletins of one template, not copies.

    If many more n-grams differ than these can explain, it is the text that was changed.

    Args:
        rows: rows that contain both.
        a: row of one text.
        b: row of the other.
        changed: number of n-grams that only one of them has, not counting those that a longer text adds.
        limits: thresholds.
    """
    numbers = _common(rows.numbers, rows.number_lengths, rows.number_sizes, a, b)
    places = _common(rows.places, rows.place_lengths, rows.place_sizes, a, b)
    both = _Common(numbers.fewer + places.fewer, numbers.same + places.same)
    other = (
        _differ(numbers, limits.numbers_min, limits)
        or _other_places(places, limits)
        or _differ(both, limits.numbers_min, limits)
    )
    return other and changed <= limits.numbers_grams * 2.0 * (both.fewer - both.same)


@kernel
def _other_places(places: _Common, limits: Limits) -> bool:
    """Tell whether two texts are about different places. Half of them is too few: all visitors go to Beijing."""
    compared = limits.numbers_overlap > 0.0 and places.fewer >= limits.places_min
    # More than all is more than any text has.
    return compared and places.same < places.fewer and places.same <= limits.numbers_overlap * places.fewer


@kernel
def _common(sketches: U32, lengths: I64, sizes: I64, a: int, b: int) -> _Common:
    _, containment, error = resemblance(
        sketches[a], lengths[a], sizes[a], sketches[b], lengths[b], sizes[b], PARTICULAR_BITS
    )
    fewer = float(min(sizes[a], sizes[b]))
    # Three standard errors plus three members: of a long text so few are sampled that none may match by chance.
    doubt = 3.0 * error + (3.0 / fewer if error > 0.0 else 0.0)
    return _Common(fewer, fewer * min(1.0, containment + doubt))


@kernel
def _differ(common: _Common, least: int, limits: Limits) -> bool:
    return common.fewer >= least and common.same < limits.numbers_overlap * common.fewer
