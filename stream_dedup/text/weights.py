"""Terms to weights: tf x idf x (1 + part of speech + length + marker + title).

Knows the weighting formula of the 2020 paper and its profiles; knows nothing of hash bits or storage.
"""

from dataclasses import astuple, dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from stream_dedup.arrays import F64, I64, U8, U32, U64, Bool
from stream_dedup.compiled.hashing import EMPTY, find_slot, table_size
from stream_dedup.compiled.kernel import kernel
from stream_dedup.settings.engine import IDF_CEILING, IDF_FLOOR, WeightSettings
from stream_dedup.text.idf import Epoch
from stream_dedup.text.lexicon import NOUN, Lexicon
from stream_dedup.text.terms import Terms

# Indices in `Profile.factors` after those of noun, verb and other.
_LENGTH, _MARKER, _TITLE, _PRIOR_DOCUMENTS, _IDF_FLOOR, _IDF_CEILING = range(3, 9)


@dataclass(frozen=True, slots=True)
class Profile:
    """The factors of the formula.

    Attributes:
        noun: pos(w) of a noun; `verb` and `other` likewise.
        verb: see `noun`.
        other: see `noun`.
        length: bonus of the longest word of a text; the shortest gets 0.
        marker: bonus of a word that is, or contains, a marker word.
        title: bonus of a word that occurs in the title.
        prior_documents: how many articles the dictionary's frequencies count as; 0 for the bare counts.
        idf_floor: idf is at least this.
        idf_ceiling: idf is at most this.
    """

    noun: float = 3.0
    verb: float = 2.0
    other: float = 1.0
    length: float = 1.0
    marker: float = 5.0
    title: float = 0.0
    prior_documents: float = 2000.0
    idf_floor: float = IDF_FLOOR
    idf_ceiling: float = IDF_CEILING

    def factors(self) -> F64:
        """Return the factors as an array for the kernels, shape (9,)."""
        return np.array(astuple(self))


DEFAULT = Profile()
PAPER_2020 = Profile(title=5.0, prior_documents=0.0, idf_floor=-np.inf, idf_ceiling=np.inf)


@kernel
def inverse_document_frequency(documents: float, df: float, prior: float, factors: F64) -> float:
    """Return log((N + P) / (df + P p) + 0.01), natural, clamped: idf of the 2020 paper, smoothed by a prior.

    With P = 0 it is the paper's log(N / df + 0.01), with df and N at least 1: a word that no article has contained so
    far is as rare as one that a single article contained.

    Args:
        documents: N, articles counted.
        df: articles that contain the word.
        prior: p, the share of documents that the dictionary expects to contain the word.
        factors: of the profile, with P, floor and ceiling.
    """
    strength = factors[_PRIOR_DOCUMENTS]
    bare = max(documents, 1.0) / max(df, 1.0)
    ratio = (documents + strength) / (df + strength * prior) if strength > 0.0 else bare
    return float(min(max(np.log(ratio + 0.01), factors[_IDF_FLOOR]), factors[_IDF_CEILING]))


@kernel
def term_weight(
    tf: float,
    idf: float,
    part_of_speech: int | np.uint8,
    relative_length: float,
    marker: bool,  # noqa: FBT001  # a kernel has no keyword-only arguments
    in_title: bool,  # noqa: FBT001  # the same
    factors: F64,
) -> float:
    """Return tf x idf x (1 + pos + len + marker + title): doi 10.12677/csa.2020.102038.

    Args:
        tf: occurrences of the word / words of the text.
        idf: see `inverse_document_frequency`.
        part_of_speech: 3 noun, 2 verb, 1 other.
        relative_length: (length - shortest) / (longest - shortest) over the words of the text, 0 if all are equal.
        marker: the word is, or contains, a marker word.
        in_title: the word occurs in the title.
        factors: of the profile.
    """
    part = factors[np.int64(NOUN) - np.int64(part_of_speech)]  # a look-up, since a branch could not be predicted
    bonus = factors[_LENGTH] * relative_length + factors[_MARKER] * marker + factors[_TITLE] * in_title
    return float(tf * idf * (1.0 + part + bonus))


def weigh(terms: Terms, titles: Terms | None, lexicon: Lexicon, epoch: Epoch, profile: Profile) -> F64:
    """Return the weight of each term, shape (m,).

    Args:
        terms: of the bodies.
        titles: of the titles, or None where the profile has no title factor.
        lexicon: prior and part of speech.
        epoch: the document counts.
        profile: the factors.
    """
    title_offsets = np.zeros(len(terms.offsets), np.int64) if titles is None else titles.offsets
    title_hashes = np.empty(0, np.uint64) if titles is None else titles.hashes
    factors = profile.factors()
    counted = _Counted(epoch.keys, epoch.counts, float(epoch.documents), lexicon.prior, lexicon.unknown_prior)
    return _weigh(
        terms.offsets,
        terms.counts,
        terms.lengths,
        terms.entries,
        terms.markers,
        _in_title(terms.offsets, terms.hashes, title_offsets, title_hashes),
        _idf_of(terms.hashes, terms.entries, counted, factors, _known_idf(epoch, lexicon, profile)),
        lexicon.part_of_speech,
        factors,
    )


class _Counted(NamedTuple):
    """What decides how rare words are: the epoch's `keys`, `counts` and `documents`, and the priors of the lexicon."""

    keys: U64
    counts: U32
    documents: float
    prior: F64
    unknown_prior: float


@lru_cache(maxsize=2)
def _known_idf(epoch: Epoch, lexicon: Lexicon, profile: Profile) -> F64:  # noqa: ARG001  # the key of the cache
    """Return room for the idf of each entry of the lexicon in an epoch: NaN until it is first needed."""
    return np.full(len(lexicon.prior), np.nan)


@kernel
def _idf_of(hashes: U64, entries: I64, counted: _Counted, factors: F64, known: F64) -> F64:
    """Return the idf of each term; that of a lexicon entry is computed when first needed and kept in `known`.

    Two threads may do so at the same time: they write the same value.
    """
    idf = np.empty(len(hashes), np.float64)
    for i in range(len(hashes)):
        entry = entries[i]
        idf[i] = known[entry] if entry >= 0 else np.nan
        if np.isnan(idf[i]):
            df = counted.counts[find_slot(counted.keys, hashes[i])]
            prior = counted.prior[entry] if entry >= 0 else counted.unknown_prior
            idf[i] = inverse_document_frequency(counted.documents, df, prior, factors)
            if entry >= 0:
                known[entry] = idf[i]
    return idf


@kernel
def _in_title(offsets: I64, hashes: U64, title_offsets: I64, title_hashes: U64) -> Bool:
    found = np.zeros(len(hashes), np.bool_)
    for article in range(len(offsets) - 1):
        first, last = title_offsets[article], title_offsets[article + 1]
        if first == last:
            continue
        table = np.full(table_size(last - first), EMPTY)
        for i in range(first, last):
            table[find_slot(table, title_hashes[i])] = title_hashes[i]
        for i in range(offsets[article], offsets[article + 1]):
            found[i] = table[find_slot(table, hashes[i])] == hashes[i]
    return found


@kernel
def _weigh(
    offsets: I64,
    counts: I64,
    lengths: I64,
    entries: I64,
    markers: Bool,
    in_title: Bool,
    idf: F64,
    part_of_speech: U8,
    factors: F64,
) -> F64:
    weights = np.empty(len(counts), np.float64)
    for article in range(len(offsets) - 1):
        first, last = offsets[article], offsets[article + 1]
        if first == last:
            continue
        words = counts[first:last].sum()
        shortest = lengths[first:last].min()
        spread = max(lengths[first:last].max() - shortest, 1)
        for i in range(first, last):
            weights[i] = term_weight(
                counts[i] / words,
                idf[i],
                # Words that the dictionary lacks were found by the hidden Markov model: nearly all are names.
                part_of_speech[entries[i]] if entries[i] >= 0 else NOUN,
                (lengths[i] - shortest) / spread,
                markers[i],
                in_title[i],
                factors,
            )
    return weights


def profile_of(settings: WeightSettings) -> Profile:
    """Return the profile that the settings name, with the factors that they override."""
    base = PAPER_2020 if settings.profile == "paper2020" else DEFAULT
    own = settings.model_dump(exclude={"profile"}, exclude_none=True)
    return replace(base, **own)
