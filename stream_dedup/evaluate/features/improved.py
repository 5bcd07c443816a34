"""The improved weights of the 2020 paper, with each factor on or off. They remove stop words.

Knows the engine's weighting and lexicon; knows nothing of a stream: all texts are counted before the first is weighed.
"""

from dataclasses import replace
from functools import partial

from stream_dedup.evaluate.features.bags import Bags, bags
from stream_dedup.evaluate.features.feature import Feature, Kind, Texts
from stream_dedup.text.idf import DocumentCounts, Epoch, document_delta
from stream_dedup.text.lexicon import Lexicon, build_lexicon, read_words, shipped_list
from stream_dedup.text.normal import Normaliser
from stream_dedup.text.terms import Terms, extract_terms
from stream_dedup.text.weights import PAPER_2020, Profile, weigh
from stream_dedup.text.words import words_of

SOURCE = "improved SimHash, 2020, doi 10.12677/csa.2020.102038"
_OFF = {
    "pos": {"noun": 0.0, "verb": 0.0, "other": 0.0},
    "length": {"length": 0.0},
    "marker": {"marker": 0.0},
    "title": {"title": 0.0},
}
_NO_IDF = {"idf_floor": 1.0, "idf_ceiling": 1.0}


def improved_features() -> list[Feature]:
    """Return the improved weights: complete, without one factor, with only one, and `plain` with just tf x idf."""
    whole = [("improved", PAPER_2020), ("improved-no-idf", replace(PAPER_2020, **_NO_IDF))]
    without = [(f"improved-no-{factor}", _without(factor)) for factor in _OFF]
    alone = [(f"improved-only-{factor}", _without(*(_OFF.keys() - {factor}))) for factor in _OFF]
    variants = [*whole, *without, *alone, ("improved-plain", _without(*_OFF))]
    return [Feature(name, SOURCE, partial(improved, profile=profile), Kind.WEIGHTED) for name, profile in variants]


def _without(*factors: str) -> Profile:
    return replace(PAPER_2020, **{name: value for factor in factors for name, value in _OFF[factor].items()})


def improved(texts: Texts, profile: Profile) -> Bags:
    """Weigh a word by tf x log(N / df + 0.01) x (1 + pos + length + marker + title).

    A word counts as occurring in the title if the title's normalised text contains it: titles are not segmented.

    Args:
        texts: the texts whose words are weighed.
        profile: the factors.
    """
    lexicon = _lexicon()
    terms = extract_terms(words_of(map(list, texts.words)), lexicon)
    titles = _title_terms(texts, lexicon) if profile.title else None
    weights = weigh(terms, titles, lexicon, _counted(terms), profile)
    return bags(terms.offsets, terms.hashes, weights)


def _lexicon() -> Lexicon:
    return build_lexicon((), *(read_words(shipped_list(name)) for name in ("stop_words.txt", "marker_words.txt")))


def _title_terms(texts: Texts, lexicon: Lexicon) -> Terms:
    normal = Normaliser()
    titles = [normal(article.title) for article in texts.articles]
    pairs = zip(texts.words, titles, strict=True)
    return extract_terms(words_of([word for word in set(words) if word in title] for words, title in pairs), lexicon)


def _counted(terms: Terms) -> Epoch:
    """Return the document counts of all texts."""
    counts = DocumentCounts(max_words=len(terms.hashes) + 1)  # more than there are, so that none is evicted
    counts.add(len(terms.offsets) - 1, document_delta(terms.hashes))
    return counts.freeze(1)
