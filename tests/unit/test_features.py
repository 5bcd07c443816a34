"""A batch's features are those of its articles, whatever was segmented or fingerprinted in advance."""

from itertools import product

import numpy as np
import pytest

from stream_dedup import Article, EngineSettings
from stream_dedup.arrays import I64, U64
from stream_dedup.fingerprint.features import Features, Fingerprinter
from stream_dedup.text.idf import Epoch, document_delta
from stream_dedup.text.normal import Normaliser
from stream_dedup.text.terms import Terms
from stream_dedup.text.texts import Texts
from stream_dedup.text.words import Words

_LINE = "责任编辑：王芳"
_LINK = "https://t.cn/A6xYz01"
_NORMAL = Normaliser()


def _articles(bodies: list[str]) -> list[Article]:
    """Return articles of every kind that is processed in its own way."""
    story = bodies[0]
    texts = [
        story,
        f"{story}\n{_LINE}",
        f"<p>{story}</p>",
        f"{story}{_LINK}。{bodies[1]}",
        f"{story}气温31℃，cafe\u0301。",
        _LINE,
        _LINK,
        "😂😂",
        "\u200b。",
        *bodies[2:6],
    ]
    return [Article(str(place), text, source="甲报") for place, text in enumerate(texts)]


def _of(features: Features, place: int) -> list[list[int] | bool | str]:
    terms, lines = features.terms.part(place, place + 1), features.lines
    arrays = [terms.hashes, terms.counts, *(of[place] for of in (*features.sketches, *features.numbers))]
    arrays += [*(of[place] for of in features.places), lines.of(place)]
    bare, taken = bool(features.only_boilerplate[place]), bool(lines.taken[place])
    return [*(np.ravel(array).tolist() for array in arrays), bare, taken, features.texts.text(place)]


def test_features_of_a_batch_are_those_of_its_articles(fingerprinter: Fingerprinter, bodies: list[str]) -> None:
    """Each article has the same features as alone, whatever the other articles of its batch need."""
    articles = _articles(bodies)
    together = fingerprinter.features(articles)
    for place, article in enumerate(articles):
        assert _of(together, place) == _of(fingerprinter.features([article]), 0)


def test_part_of_features_is_that_of_the_articles(fingerprinter: Fingerprinter, bodies: list[str]) -> None:
    """A part of a batch's features has those of its articles, including their texts."""
    articles = _articles(bodies)
    part, alone = fingerprinter.features(articles).part(2, 7), fingerprinter.features(articles[2:7])
    assert [_of(part, place) for place in range(5)] == [_of(alone, place) for place in range(5)]


@pytest.mark.parametrize("titled", [False, True])
def test_words_cut_ahead_are_those_cut_in_their_turn(bodies: list[str], *, titled: bool) -> None:
    """Whichever articles were segmented and fingerprinted in advance, exactly the requested ones have terms."""
    weights = {"title": 2.0} if titled else {}
    fingerprinter = Fingerprinter(EngineSettings.model_validate({"weights": weights}))
    plain, every = fingerprinter.unsegmented(_articles(bodies)), fingerprinter.features(_articles(bodies))
    epoch, chance = Epoch(), np.random.default_rng(7)
    fingerprints, sums = fingerprinter.fingerprints(every, epoch)
    everywhere = np.ones(len(plain.cut), np.bool_)
    masks = [everywhere, ~everywhere, *(chance.random((6, len(everywhere))) < 0.5)]
    for ahead, wanted, first in product(masks, masks, (0, 5, len(everywhere))):
        features = fingerprinter.segmented(plain, ahead)
        if first:
            known = fingerprinter.fingerprinted(features.part(0, first), epoch)
            features = Features.joined([known, features.part(first, len(everywhere))])
        features = fingerprinter.segmented(features, wanted)
        assert features.cut.tolist() == wanted.tolist()
        for place in range(len(wanted)):
            for terms, others in ((features.terms, every.terms), (features.titles, every.titles)):
                if terms is not None and others is not None:
                    own, expected = terms.part(place, place + 1), others.part(place, place + 1)
                    assert own.hashes.tolist() == (expected.hashes.tolist() if wanted[place] else [])
        found, bits = fingerprinter.fingerprints(features, epoch)
        assert found.tolist() == np.where(wanted, fingerprints, 0).tolist()
        assert bits.tolist() == np.where(wanted[:, np.newaxis], sums, 0).tolist()


def test_words_that_are_there_are_not_cut_again(
    fingerprinter: Fingerprinter, bodies: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words that exist are kept; the segmenter gets only the missing texts, and none if none is missing."""
    features, masks = fingerprinter.unsegmented(_articles(bodies)), list[list[bool]]()
    cut = fingerprinter._cut  # noqa: SLF001  # the only way to count calls

    def noting(texts: Texts) -> Words:
        masks.append((texts.lengths() > 0).tolist())
        return cut(texts)

    monkeypatch.setattr(fingerprinter, "_cut", noting)
    every = np.ones(len(features.cut), np.bool_)
    some = np.arange(len(every)) % 3 == 0
    features = fingerprinter.segmented(features, some)
    features = fingerprinter.segmented(features, every)
    fingerprinter.segmented(features, every)
    lengths = features.texts.lengths() > 0
    assert masks == [(some & lengths).tolist(), (~some & lengths).tolist()]


def test_fingerprints_computed_ahead_are_taken_while_their_epoch_lasts(
    fingerprinter: Fingerprinter, bodies: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within the same epoch nothing is computed again; with the weights of another epoch everything is."""
    features, first = fingerprinter.features(_articles(bodies)), Epoch()
    words = np.unique(features.terms.hashes)[::2]
    second = Epoch.restored(1, 1_000, document_delta(np.repeat(words, 700)))
    ahead = fingerprinter.fingerprinted(features, first)
    of_first, of_second = (fingerprinter.weighted(features.terms, None, epoch) for epoch in (first, second))
    assert not np.array_equal(of_first[0], of_second[0])
    found, other = fingerprinter.fingerprints(ahead, second), fingerprinter.fingerprints(features, first)
    assert all(map(np.array_equal, (*found, *other), (*of_second, *of_first)))

    def never(*_: object) -> None:
        raise AssertionError("they are known")

    monkeypatch.setattr(fingerprinter, "weighted", never)
    joined = Features.joined([ahead.part(2, 5), ahead.part(7, 9)])
    found = fingerprinter.fingerprints(joined, first)
    assert all(np.array_equal(part, whole[[2, 3, 4, 7, 8]]) for part, whole in zip(found, of_first, strict=True))


def test_joined_features_keep_the_fingerprints_up_to_the_first_that_is_missing(
    fingerprinter: Fingerprinter, bodies: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What follows it, or has the weights of another epoch, is computed again, and nothing else."""
    features, epoch = fingerprinter.features(_articles(bodies)), Epoch()
    ahead, other = fingerprinter.fingerprinted(features, epoch), fingerprinter.fingerprinted(features, Epoch())
    weighted, every = fingerprinter.weighted, len(features.cut)
    computed: list[int] = []

    def counted(terms: Terms, titles: Terms | None, epoch: Epoch) -> tuple[U64, I64]:
        computed.append(len(terms.offsets) - 1)
        return weighted(terms, titles, epoch)

    monkeypatch.setattr(fingerprinter, "weighted", counted)
    for parts, missing in (
        ([ahead, features], every),
        ([ahead.part(0, 3), features, ahead], 2 * every),
        ([Features.joined([ahead, features]), ahead], 2 * every),
        ([ahead, other], every),
        ([features, ahead], 2 * every),
    ):
        joined = Features.joined(parts)
        found = fingerprinter.fingerprints(joined, epoch)
        assert all(map(np.array_equal, found, weighted(joined.terms, None, epoch)))
        assert computed.pop() == missing
        assert not computed


def test_fingerprints_computed_ahead_outlast_that_others_are_segmented(
    fingerprinter: Fingerprinter, bodies: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If more articles are segmented later, only theirs are computed."""
    plain, epoch, computed = fingerprinter.unsegmented(_articles(bodies)), Epoch(), list[list[bool]]()
    some = np.arange(len(plain.cut)) > 3
    ahead = fingerprinter.fingerprinted(fingerprinter.segmented(plain, some), epoch)
    weighted = fingerprinter.weighted

    def noting(terms: Terms, titles: Terms | None, epoch: Epoch) -> tuple[U64, I64]:
        computed.append((np.diff(terms.offsets) > 0).tolist())
        return weighted(terms, titles, epoch)

    monkeypatch.setattr(fingerprinter, "weighted", noting)
    every = np.ones(len(some), np.bool_)
    features = fingerprinter.segmented(ahead, every)
    fingerprinter.fingerprints(features, epoch)
    assert computed == [(~some & (np.diff(features.terms.offsets) > 0)).tolist()]


def test_no_articles_have_no_features(fingerprinter: Fingerprinter) -> None:
    """An empty batch is valid."""
    assert len(fingerprinter.features([]).texts) == 0
