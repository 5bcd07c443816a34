"""Why two texts are, or are not, copies.

Knows how to expose the engine's own measures; knows nothing of the terminal.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stream_dedup.arrays import I64, U64
from stream_dedup.article import Article, Relation, VerdictReason
from stream_dedup.compiled.hashing import hash_words
from stream_dedup.engine.compare import RELATIONS, compare, limits_of
from stream_dedup.fingerprint.features import Features, Fingerprinter
from stream_dedup.fingerprint.simhash import BITS, cosine, hamming
from stream_dedup.index.entries.entries import BARE, COMPARABLE
from stream_dedup.index.lookup.candidates import rows_of
from stream_dedup.index.lookup.multi import in_tables, key_flags
from stream_dedup.index.lookup.plan import TablePlan
from stream_dedup.index.lookup.probing import probe_keys, table_keys
from stream_dedup.settings import EngineSettings
from stream_dedup.text.idf import Epoch
from stream_dedup.text.lines import NOTHING_LEARNT
from stream_dedup.text.weights import weigh


@dataclass(frozen=True, slots=True)
class WeightedWord:
    """A word and its weight in each text, 0 if the text lacks it."""

    word: str
    weights: tuple[float, float]


class SharedKeys(NamedTuple):
    """Which keys of the index lead from one article to another.

    Attributes:
        content: whether both have the same words and numbers.
        landmarks: how many landmarks both have.
        tables: in how many tables the second is listed under a key that is probed for the first.
    """

    content: bool
    landmarks: int
    tables: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """How two texts compare.

    Attributes:
        relation: relation of the first to the second; None if neither is a copy.
        ground: the reason.
        verdict: the same in words.
        jaccard: estimate, as the service computes it.
        containment: estimate, likewise.
        fingerprints: the two SimHashes.
        differing_bits: numbers of the bits in which they differ, 0 being the lowest.
        cosine: cosine of the two vectors of bit sums.
        grams: distinct n-grams of each text.
        shared_words: heaviest words that both have.
        differing_words: heaviest words that one of them lacks.
        epoch: number of the IDF epoch of the weights.
        keys: keys that lead from the first to the second.
    """

    relation: Relation | None
    ground: VerdictReason
    verdict: str
    jaccard: float
    containment: float
    fingerprints: tuple[int, int]
    differing_bits: list[int]
    cosine: float
    grams: tuple[int, int]
    shared_words: list[WeightedWord]
    differing_words: list[WeightedWord]
    epoch: int
    keys: SharedKeys

    @property
    def hamming(self) -> int:
        """Hamming distance of the fingerprints."""
        return hamming(*self.fingerprints)


class Explainer:
    """Exposes the engine's measures on two articles. Holds the dictionaries; has no mutable state.

    Args:
        settings: settings of the engine.
    """

    def __init__(self, settings: EngineSettings) -> None:
        self._settings = settings
        self.fingerprinter = Fingerprinter(settings)
        self._plan = TablePlan(settings.simhash.tables, settings.simhash.prefix_bits)

    def explain(
        self, first: Article, second: Article, epoch: Epoch, learnt: U64 = NOTHING_LEARNT, top: int = 12
    ) -> Explanation:
        """Compare two articles as the service would.

        Args:
            first: the article whose relation to the other is found.
            second: the other.
            epoch: document counts for the weights.
            learnt: lines learnt to be their sites', see `LineCounts`.
            top: largest number of words in each list.
        """
        articles = [first, second]
        features = self.fingerprinter.features(articles, learnt)
        fingerprints, sums = self.fingerprinter.fingerprints(features, epoch)
        rows = rows_of(features, fingerprints, np.zeros(2, np.int64), np.zeros(2, np.uint8), np.zeros(2, np.uint64))
        match = compare(rows, 0, 1, limits_of(self._settings))
        bare = bool(features.only_boilerplate.any())
        relation = None if bare else RELATIONS[match.relation]
        shared, differing = _words(self.fingerprinter, features, articles, epoch, top)
        bits = int(fingerprints[0] ^ fingerprints[1])
        sizes = features.sketches.sizes
        ground = VerdictReason.NO_CONTENT
        if not bare:
            ground = ground_of(relation, match.jaccard, match.containment, int(sizes.min()), self._settings)
        return Explanation(
            relation,
            ground,
            _verdict(ground, match.jaccard, match.containment, self._settings),
            float(match.jaccard),
            float(match.containment),
            (int(fingerprints[0]), int(fingerprints[1])),
            [bit for bit in range(BITS) if bits >> bit & 1],
            cosine(sums[0], sums[1]),
            (int(sizes[0]), int(sizes[1])),
            shared,
            differing,
            epoch.number,
            self._shared_keys(features, fingerprints, sums),
        )

    def _shared_keys(self, features: Features, fingerprints: U64, sums: I64) -> SharedKeys:
        """Return which of the keys that both articles are listed under lead from the first to the second."""
        contents, marks = features.sketches.content, features.sketches.landmarks
        flags = key_flags(features, self._settings)
        both = np.intersect1d(marks[0], marks[1])
        probed = probe_keys(self._plan, fingerprints[:1], sums[:1], self._settings.simhash.probes)
        own = table_keys(self._plan.prefixes(fingerprints[1:]))
        return SharedKeys(
            bool(contents[0] == contents[1] and not (flags & BARE).any()),
            int(np.count_nonzero(both)) if (flags & COMPARABLE).all() else 0,
            len(np.intersect1d(probed, own)) if in_tables(features, sums, self._settings).all() else 0,
        )


def explain(
    first: str, second: str, settings: EngineSettings, epoch: Epoch | None = None, top: int = 12
) -> Explanation:
    """Compare two texts as the service would.

    Args:
        first: a text, not blank.
        second: another.
        settings: settings of the engine.
        epoch: document counts for the weights; those of the dictionary alone if None.
        top: largest number of words in each list.

    Raises:
        ValueError: a text is blank.
    """
    articles = Article("first", first), Article("second", second)
    return Explainer(settings).explain(*articles, epoch or Epoch(), top=top)


def ground_of(
    relation: Relation | None, jaccard: float, containment: float, smallest: int, settings: EngineSettings
) -> VerdictReason:
    """Return why two texts with content are, or are not, copies.

    Args:
        relation: of one to the other; None if neither is a copy.
        jaccard: estimate.
        containment: estimate.
        smallest: number of n-grams of the text with fewer of them.
        settings: settings of the engine.
    """
    verify = settings.verify
    if relation is not None:
        return VerdictReason(relation)
    if smallest < verify.min_grams:
        return VerdictReason.TOO_SHORT
    alike = jaccard >= verify.near_jaccard or containment >= verify.min_containment
    return VerdictReason.TEMPLATE if alike else VerdictReason.TOO_LITTLE


def _verdict(ground: VerdictReason, jaccard: float, containment: float, settings: EngineSettings) -> str:
    verify = settings.verify
    near, part = verify.near_jaccard, verify.min_containment
    measured = f"Jaccard {jaccard:.2f}, containment {containment:.2f}"
    reasons = {
        VerdictReason.EXACT: "the normalised texts are the same",
        VerdictReason.NEAR: f"{measured}: most n-grams are in both",
        VerdictReason.CONTAINED: f"{measured}: the first is a part of the second",
        VerdictReason.CONTAINS: f"{measured}: the second is a part of the first",
        VerdictReason.NO_CONTENT: "one text consists only of what sites put around articles, so it matches no other",
        VerdictReason.TOO_SHORT: f"a text of under {verify.min_grams} n-grams is only compared as a whole, and the two "
        "differ",
        VerdictReason.TEMPLATE: f"{measured}: similar, but numbers or place names differ, so these are two bulletins "
        "from one template",
        VerdictReason.TOO_LITTLE: f"{measured}: below {near} and {part}, so too little is shared",
    }
    return reasons[ground]


def _words(
    fingerprinter: Fingerprinter, features: Features, articles: Sequence[Article], epoch: Epoch, top: int
) -> tuple[list[WeightedWord], list[WeightedWord]]:
    """Return the heaviest words that both texts have, and the heaviest that one of them lacks."""
    weights = weigh(features.terms, features.titles, fingerprinter.lexicon, epoch, fingerprinter.profile)
    by_hash = [
        dict(zip(features.terms.hashes[at].tolist(), weights[at].tolist(), strict=True))
        for at in map(features.terms.of, (0, 1))
    ]
    words = sorted({word for article in articles for word in fingerprinter.words(article.body)})
    weighted = [
        WeightedWord(word, (by_hash[0].get(value, 0.0), by_hash[1].get(value, 0.0)))
        for word, value in zip(words, hash_words(words).tolist(), strict=True)
    ]
    shared = [word for word in weighted if min(word.weights) > 0]
    differing = [word for word in weighted if min(word.weights) == 0 < max(word.weights)]
    return _heaviest(shared, top), _heaviest(differing, top)


def _heaviest(words: list[WeightedWord], top: int) -> list[WeightedWord]:
    return sorted(words, key=lambda word: -sum(word.weights))[:top]
