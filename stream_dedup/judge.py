"""Candidates to verdicts: which of them an article is a copy of, and how, article by article in order.

Knows thresholds and guards; knows nothing of storage or of article ids.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stream_dedup.article import Relation, Source
from stream_dedup.fingerprint.simhash import popcount
from stream_dedup.fingerprint.sketch import resemblance
from stream_dedup.hashing import I64, kernel
from stream_dedup.index.candidates import NO_ROW, SIMHASH, Candidates
from stream_dedup.index.records import Rows
from stream_dedup.settings import EngineSettings

F64 = NDArray[np.float64]
Bool = NDArray[np.bool_]

NONE, EXACT, NEAR, CONTAINED, CONTAINS = 0, 1, 2, 3, 4
RELATIONS = (None, Relation.EXACT, Relation.NEAR, Relation.CONTAINED, Relation.CONTAINS)
SOURCES = (Source.CONTENT, Source.LANDMARK, Source.SIMHASH)

JUDGE, SKIP, INDEX = 0, 1, 2  # what to do with an article: judge it, leave it out, index it unjudged


class Limits(NamedTuple):
    """The thresholds of verification; see `VerifySettings` for each."""

    near_jaccard: float
    min_containment: float
    cut_containment: float
    min_grams: int
    numbers_overlap: float
    numbers_min: int
    numbers_jaccard: float
    variant_jaccard: float
    max_distance: int


class Match(NamedTuple):
    """How two texts compare.

    Attributes:
        relation: `NONE` to `CONTAINS`: what the first is to the second.
        jaccard: estimate.
        containment: estimate.
        hamming: distance of the fingerprints.
    """

    relation: int
    jaccard: float
    containment: float
    hamming: int


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What became of n articles.

    Attributes:
        rows: row of the best match, `NO_ROW` where there is none, shape (n,).
        relations: `NONE` to `CONTAINS`, shape (n,).
        jaccard: estimate for the best match, shape (n,); `containment` and `hamming` likewise.
        containment: see `jaccard`.
        hamming: see `jaccard`.
        sources: family that found the best match, shape (n,).
        indexed: whether later articles shall find this one, shape (n,).
        candidates: candidates by family that found them first, shape (n, 3).
        confirmed: those of them that matched, shape (n, 3).
    """

    rows: I64
    relations: I64
    jaccard: F64
    containment: F64
    hamming: I64
    sources: I64
    indexed: Bool
    candidates: I64
    confirmed: I64


def limits_of(settings: EngineSettings) -> Limits:
    """Return the thresholds that the settings name."""
    verify = settings.verify
    return Limits(
        verify.near_jaccard,
        verify.min_containment,
        verify.cut_containment,
        verify.min_grams,
        verify.numbers_overlap,
        verify.numbers_min,
        verify.numbers_jaccard,
        verify.variant_jaccard,
        settings.simhash.max_distance,
    )


def judge(candidates: Candidates, modes: I64, caps: I64, limits: Limits, duplicates: Bool) -> Verdicts:
    """Judge a batch in order: each article against stored entries and the articles before it that were indexed.

    The outcome is that of judging one article at a time, however the stream is cut into batches.

    Args:
        candidates: of the batch of n.
        modes: `JUDGE`, `SKIP` or `INDEX`, shape (n,).
        caps: postings visible a key, by family.
        limits: thresholds.
        duplicates: which of the relations `NONE` to `CONTAINS` make an article a duplicate, shape (5,).
    """
    return Verdicts(
        *_judge(
            candidates.rows,
            modes,
            candidates.look_up_offsets,
            candidates.look_up_keys,
            candidates.own_keys,
            candidates.key_families,
            candidates.list_offsets,
            candidates.list_rows,
            caps,
            limits,
            duplicates,
        )
    )


@kernel
def compare(rows: Rows, a: int, b: int, limits: Limits) -> Match:
    """Return what text a is to text b."""
    hamming = popcount(rows.fingerprints[a] ^ rows.fingerprints[b])
    if rows.contents[a] == rows.contents[b]:
        return Match(EXACT, 1.0, 1.0, hamming)
    jaccard, containment = resemblance(
        rows.sketches[a], rows.lengths[a], rows.sizes[a], rows.sketches[b], rows.lengths[b], rows.sizes[b]
    )
    relation = _relation(jaccard, containment, rows.sizes[a], rows.sizes[b], limits)
    if relation != NONE and jaccard < limits.numbers_jaccard and _other_numbers(rows, a, b, limits):
        relation = NONE
    return Match(relation, jaccard, containment, hamming)


@kernel
def _relation(jaccard: float, containment: float, size_a: int, size_b: int, limits: Limits) -> int:
    if min(size_a, size_b) < limits.min_grams:
        return NONE
    if max(jaccard / limits.near_jaccard, containment / limits.min_containment) < 1.0:
        return NONE
    # |smaller| / |larger| is at most J / C: where J is well below C, one text is a part of the other.
    cut = containment >= limits.cut_containment and jaccard < limits.cut_containment
    if jaccard >= limits.near_jaccard and not cut:
        return NEAR
    return CONTAINED if size_a <= size_b else CONTAINS


@kernel
def _other_numbers(rows: Rows, a: int, b: int, limits: Limits) -> bool:
    """Tell whether two texts carry different numbers: bulletins of one template, not copies."""
    fewer = min(rows.number_sizes[a], rows.number_sizes[b])
    if fewer < limits.numbers_min:
        return False
    _, overlap = resemblance(
        rows.numbers[a],
        rows.number_lengths[a],
        rows.number_sizes[a],
        rows.numbers[b],
        rows.number_lengths[b],
        rows.number_sizes[b],
    )
    return overlap < limits.numbers_overlap


@kernel
def _judge(
    rows: Rows,
    modes: I64,
    look_up_offsets: I64,
    look_up_keys: I64,
    own_keys: I64,
    key_families: NDArray[np.uint8],
    list_offsets: I64,
    list_rows: I64,
    caps: I64,
    limits: Limits,
    duplicates: Bool,
) -> tuple[I64, I64, F64, F64, I64, I64, Bool, I64, I64]:
    n, own_width = own_keys.shape
    stored = len(rows.fingerprints) - n
    best_rows = np.full(n, NO_ROW, np.int64)
    relations = np.zeros(n, np.int64)
    jaccards, containments = np.zeros(n), np.zeros(n)
    distances = np.zeros(n, np.int64)
    sources = np.zeros(n, np.int64)
    indexed = np.zeros(n, np.bool_)
    counted, confirmed = np.zeros((n, 3), np.int64), np.zeros((n, 3), np.int64)
    # Articles of this batch under each key, the newest first: linked lists through `older`.
    newest = np.full(len(key_families), -1, np.int64)
    older = np.empty(n * own_width, np.int64)
    node_rows = np.empty(n * own_width, np.int64)
    nodes = 0
    seen = np.full(len(rows.fingerprints), -1, np.int64)
    found_by = np.zeros(len(rows.fingerprints), np.int64)
    found = np.empty(len(rows.fingerprints), np.int64)
    for i in range(n):
        row = stored + i
        if modes[i] == JUDGE:
            count = 0
            for place in range(look_up_offsets[i], look_up_offsets[i + 1]):
                key = look_up_keys[place]
                family = np.int64(key_families[key])
                room = caps[family]
                node = newest[key]
                while node >= 0 and room > 0:
                    count = _note(node_rows[node], i, family, rows, row, limits, seen, found_by, found, count)
                    node = older[node]
                    room -= 1
                posting = list_offsets[key + 1] - 1
                while posting >= list_offsets[key] and room > 0:
                    if list_rows[posting] != NO_ROW:
                        count = _note(list_rows[posting], i, family, rows, row, limits, seen, found_by, found, count)
                    posting -= 1
                    room -= 1
            best = -1.0
            for place in range(count):
                candidate = found[place]
                match = compare(rows, row, candidate, limits)
                counted[i, found_by[candidate]] += 1
                if match.relation == NONE:
                    continue
                confirmed[i, found_by[candidate]] += 1
                score = match.jaccard + 2.0 * (match.relation == EXACT) + 4.0 * duplicates[match.relation]
                # Of equals the earliest: rows are in the order of arrival.
                if score > best or (score == best and candidate < best_rows[i]):
                    best = score
                    best_rows[i], relations[i], sources[i] = candidate, match.relation, found_by[candidate]
                    jaccards[i], containments[i], distances[i] = match.jaccard, match.containment, match.hamming
        indexed[i] = modes[i] == INDEX or (
            modes[i] == JUDGE
            and (not duplicates[relations[i]] or (relations[i] == NEAR and jaccards[i] < limits.variant_jaccard))
        )
        if indexed[i]:
            for column in range(own_width):
                key = own_keys[i, column]
                if key >= 0:
                    node_rows[nodes], older[nodes] = row, newest[key]
                    newest[key] = nodes
                    nodes += 1
    return best_rows, relations, jaccards, containments, distances, sources, indexed, counted, confirmed


@kernel
def _note(
    candidate: int,
    i: int,
    family: int,
    rows: Rows,
    row: int,
    limits: Limits,
    seen: I64,
    found_by: I64,
    found: I64,
    count: int,
) -> int:
    """Add a candidate of article i to `found` unless it is there already, and return how many there are."""
    if seen[candidate] == i:
        return count
    if family == SIMHASH and popcount(rows.fingerprints[row] ^ rows.fingerprints[candidate]) > limits.max_distance:
        return count
    seen[candidate], found_by[candidate], found[count] = i, family, candidate
    return count + 1
