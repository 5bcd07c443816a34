"""The registry of algorithms: names, the default selection, and helpful errors for unknown names."""

import pytest

from stream_dedup.evaluate.algorithm import Algorithm
from stream_dedup.evaluate.registry import STUDY_SEGMENTER, algorithms, select

_SEGMENTERS = (STUDY_SEGMENTER, "jieba-full", "ik-smart", "grams5", "thulac")


def _every() -> dict[str, Algorithm]:
    return dict(algorithms(_SEGMENTERS))


def test_names_tell_the_parts() -> None:
    """A name is segmenter/feature/similarity, with `chars` for no segmenter; each algorithm names its source."""
    for name, algorithm in _every().items():
        segmenter, feature, _ = name.split("/")
        assert algorithm.name == name
        assert algorithm.segmenter == ("" if segmenter == "chars" else segmenter)
        assert algorithm.feature == feature
        assert algorithm.source
        assert 0 < algorithm.threshold < 1


def test_all_of_the_literature_is_there() -> None:
    """Every feature and similarity of the two studies and of the 2020 paper has a name."""
    wanted = [
        *(f"ik-smart/none/{name}" for name in ("jaccard", "jaccard-shorter", "minhash-128", "minhash-one-128")),
        *(
            f"ik-smart/{feature}/{similarity}"
            for feature in ("none", "frequency", "tfidf", "textrank", "improved", "improved-no-title")
            for similarity in ("cosine", "simhash32-hamming", "simhash64-hamming", "simhash32-cosine")
        ),
        *(f"chars/{k}-grams/kgram-improved" for k in range(2, 8)),
        "ik-smart/4-shingles/jaccard-sampled",
        "chars/5-grams/jaccard",
    ]
    assert not set(wanted) - _every().keys()


def test_sets_know_no_weights() -> None:
    """A set measure is offered once per segmenter and not once per weight, since weights make no difference."""
    assert [name for name in _every() if name.startswith("ik-smart/t") and "jaccard" in name] == []


def test_thresholds_are_those_of_the_sources() -> None:
    """By default, sets count as copies from 0.5 up, SimHash from a distance of 3 down."""
    every = _every()
    assert every["ik-smart/none/jaccard"].threshold == 0.5
    assert every["ik-smart/none/simhash64-hamming"].threshold == 1 - 3 / 64
    assert every["ik-smart/none/simhash32-hamming"].threshold == 1 - 3 / 32


def test_default_is_what_the_studies_compare() -> None:
    """Some 40 algorithms: segmenters with plain SimHash, features and similarities with one segmenter, K = 2 to 7."""
    chosen = select(algorithms(_SEGMENTERS))
    assert 35 <= len(chosen) <= 45
    plain = [name.split("/")[0] for name in chosen if name.endswith("/none/simhash32-hamming")]
    assert plain == [STUDY_SEGMENTER, "jieba-full", "ik-smart"]
    for feature in ("none", "frequency", "tfidf", "textrank"):
        assert f"{STUDY_SEGMENTER}/{feature}/simhash32-hamming" in chosen
    for similarity in ("jaccard", "jaccard-shorter", "cosine", "simhash32-cosine", "minhash-one-128", "minhash-128"):
        assert f"{STUDY_SEGMENTER}/none/{similarity}" in chosen
    for k in range(2, 8):
        assert f"chars/{k}-grams/kgram-improved" in chosen


def test_selection_by_pattern_and_by_parts() -> None:
    """Patterns select by full name, lists by parts, both together their intersection, in the registry's order."""
    every = algorithms(_SEGMENTERS)
    assert list(select(every, ["chars/[67]-grams/kgram*"])) == [
        "chars/6-grams/kgram-improved",
        "chars/7-grams/kgram-improved",
    ]
    assert list(select(every, segmenters=["ik-*"], features=["none"], similarities=["jaccard", "cosine"])) == [
        "ik-smart/none/jaccard",
        "ik-smart/none/cosine",
    ]
    assert list(select(every, ["*/tfidf/*"], ["jieba-full"], similarities=["cosine"])) == ["jieba-full/tfidf/cosine"]
    assert select(every, segmenters=["chars"]).keys() == {name for name in every if name.startswith("chars/")}


def test_unknown_names_are_answered_with_close_ones() -> None:
    """A pattern or part that matches nothing is named in the error, with similar names."""
    every = algorithms(_SEGMENTERS)
    with pytest.raises(ValueError, match="'jacard' matches no similarity; closest: jaccard"):
        select(every, similarities=["jacard"])
    with pytest.raises(ValueError, match="'ik-smart/none/jacard' matches no algorithm; closest: ik-smart/none/jaccard"):
        select(every, ["ik-smart/none/jacard"])


def test_parts_that_do_not_go_together_are_refused() -> None:
    """TF-IDF and Jaccard exist but do not combine; the error names the requested combination."""
    with pytest.raises(ValueError, match=r"no algorithm matches all of \[\['tfidf'\], \['jaccard'\]\]"):
        select(algorithms(_SEGMENTERS), features=["tfidf"], similarities=["jaccard"])
