"""Terms are distinct words in order, counted, without stop words, with what the lexicon knows of them."""

from collections import Counter
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_dedup.article import Article
from stream_dedup.compiled.hashing import EMPTY, code_points, hash_end, hash_prefixes, hash_words
from stream_dedup.fingerprint.features import Fingerprinter
from stream_dedup.settings import EngineSettings
from stream_dedup.text.lexicon import Lexicon, build_lexicon, read_words
from stream_dedup.text.segment import segmenter
from stream_dedup.text.terms import Terms, extract_terms
from stream_dedup.text.texts import Texts
from stream_dedup.text.user_words import UserWord
from stream_dedup.text.words import words_of

_STOPS = ("的", "与", "the")
_MARKERS = ("总之", "数据显示", "但")
_WORDS = ("经济", "发展", "的", "总之", "数据显示屏", "但", "但书", "，", "2026", "k", "帆影云栈", "the", "👍")


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    """Return a lexicon of jieba's dictionary with one user word, three stop words and three marker words."""
    return build_lexicon((UserWord("帆影云栈", 500, "v"),), tuple(_STOPS), tuple(_MARKERS))


def _expected(words: list[str]) -> dict[str, int]:
    """Return the number of occurrences of each term in order of first occurrence, counted the slow way."""
    return Counter(word for word in words if word not in _STOPS and any(map(str.isalnum, word)))


@given(articles=st.lists(st.lists(st.sampled_from(_WORDS), max_size=25), min_size=1, max_size=6))
def test_terms_are_the_distinct_words_with_their_counts(lexicon: Lexicon, articles: list[list[str]]) -> None:
    """For each article, the distinct words except stop words and punctuation are counted, in order."""
    terms = extract_terms(words_of(articles), lexicon)
    assert len(terms.offsets) == len(articles) + 1
    for article, words in enumerate(articles):
        expected = _expected(words)
        at = terms.of(article)
        assert terms.hashes[at].tolist() == hash_words(list(expected)).tolist()
        assert terms.counts[at].tolist() == list(expected.values())
        assert terms.lengths[at].tolist() == [len(word) for word in expected]


def test_no_article_and_empty_articles_have_no_terms(lexicon: Lexicon) -> None:
    """Neither an empty batch nor an empty article has terms."""
    assert extract_terms(words_of([]), lexicon).offsets.tolist() == [0]
    assert extract_terms(words_of([[], ["，", "的"], []]), lexicon).offsets.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("user_words", [(), (UserWord("帆影云栈", 500, "v"), UserWord("总之啊", 500, "v"))])
def test_terms_do_not_depend_on_what_the_segmenter_knows_of_words(
    user_words: tuple[UserWord, ...], lexicon: Lexicon, bodies: list[str]
) -> None:
    """Words have the same terms with and without numbers of a vocabulary."""
    texts = [*bodies, "", "总之啊，帆影云栈的总之啊！总之，但是but the 5G手机👍"]
    words = segmenter("compiled", user_words, hmm=True)(Texts.of_strings(texts))
    numbered = extract_terms(words, lexicon)
    plain = extract_terms(words_of(words.of(text) for text in range(len(texts))), lexicon)
    assert words.numbers.any()
    for field in fields(Terms):
        assert getattr(numbered, field.name).tolist() == getattr(plain, field.name).tolist(), field.name


def test_markers_are_marker_words_and_words_that_contain_one(lexicon: Lexicon) -> None:
    """A word that is or contains a marker word is marked; a marker of one character counts only as a whole word."""
    words = ["总之", "数据显示屏", "数据", "但", "但书", "经济"]
    assert extract_terms(words_of([words]), lexicon).markers.tolist() == [True, True, False, True, False, False]


def test_parts_of_speech_are_those_of_the_dictionary(lexicon: Lexicon) -> None:
    """Nouns are 3, verbs 2, others 1, user words as the user says; unknown words have no entry."""
    terms = extract_terms(words_of([["桌子", "吃饭", "迅速", "帆影云栈", "没这词儿吧"]]), lexicon)
    assert terms.entries[4] == -1
    assert lexicon.part_of_speech[terms.entries[:4]].tolist() == [3, 2, 1, 2]


def test_priors_grow_with_the_dictionary_s_frequency(lexicon: Lexicon) -> None:
    """A frequent word is expected in more documents than a rare one, and an unknown word in the fewest."""
    terms = extract_terms(words_of([["中国", "经济", "熵增"]]), lexicon)
    frequent, less, rare = (lexicon.prior[entry] if entry >= 0 else lexicon.unknown_prior for entry in terms.entries)
    assert 1 > frequent > less > rare >= lexicon.unknown_prior > 0


def test_user_word_that_names_no_frequency_keeps_that_of_the_dictionary() -> None:
    """If it is not in the dictionary, it is as rare as possible; the part of speech is the user's."""
    words = [["公司", "帆影云栈", "经济"]]
    plain = build_lexicon((), (), ())
    own = build_lexicon(
        (UserWord("公司", None, "v"), UserWord("帆影云栈", None, "n"), UserWord("经济", 9, "n")), (), ()
    )
    before, after = (extract_terms(words_of(words), each).entries for each in (plain, own))
    # The total includes the word once more, with the user's frequency.
    assert own.prior[after[0]] == pytest.approx(plain.prior[before[0]], rel=1e-3)
    assert own.part_of_speech[after].tolist() == [2, 3, 3]
    assert own.prior[after[1]] == pytest.approx(plain.unknown_prior, rel=1e-3)
    assert own.prior[after[2]] < plain.prior[before[2]]


def test_entries_of_the_lists_are_normalised_as_articles_are() -> None:
    """Stop words and marker words may be given in capitals, traditional or full-width characters."""
    lexicon = build_lexicon((), ("ＴＨＥ", "這個"), ("總之",))
    terms = extract_terms(words_of([["the", "这个", "总之"]]), lexicon)
    assert terms.hashes.tolist() == hash_words(["总之"]).tolist()
    assert terms.markers.tolist() == [True]


def test_stop_words_hold_where_articles_are_not_simplified(tmp_path: Path) -> None:
    """With text.simplify = false, a traditional stop word in the user's list removes the traditional word."""
    path = tmp_path / "stops.txt"
    path.write_text("這個\n", encoding="utf-8")
    settings = EngineSettings.model_validate({"text": {"simplify": False, "stop_words": path}})
    fingerprinter = Fingerprinter(settings)
    features = fingerprinter.features([Article("a", "這個 股票")])
    assert "這個" in fingerprinter.words("這個 股票")
    assert hash_words(["這個"])[0] not in features.terms.hashes


def test_word_lists_are_a_word_a_line(tmp_path: Path) -> None:
    """Blank lines and comments are skipped, and whitespace around a word is removed."""
    path = tmp_path / "words.txt"
    path.write_text("# 注\n总之\n\n  但是  \n", encoding="utf-8")
    assert read_words(path) == ("总之", "但是")


def test_hashes_of_words_are_the_documented_ones(hash_of: Callable[[str], int], bodies: list[str]) -> None:
    """A word's hash is FNV-1a over its code points, finished by splitmix64, and the same on every machine."""
    words = ["", "a", "中国", "👍", *bodies[0].split("，")]
    assert hash_words(words).tolist() == [hash_of(word) for word in words]


def test_no_hash_is_what_a_free_slot_of_a_table_holds() -> None:
    """A value of which the mixing makes that, 0, gets the hash 1."""
    assert EMPTY == 0
    assert hash_end(np.uint64(0)) == 1


def test_prefixes_have_the_hashes_of_the_words_that_they_are() -> None:
    """In a tree of 中, 国, 中国, 国中 and 中国人, each prefix has the hash of the same word."""
    words = ["中", "国", "中国", "国中", "中国人"]
    last = code_points("".join(word[-1] for word in words))
    parents = np.array([0, 0, 0, 1, 2], np.int32)
    assert hash_prefixes(last, parents, 2).tolist() == hash_words(words).tolist()


def test_hash_agrees_with_published_vectors(hash_of: Callable[[str], int]) -> None:
    """FNV-1a of `a` is af63dc4c8601ec8c (Noll's vectors); the finaliser of splitmix64 follows."""
    value = 0xAF63DC4C8601EC8C
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        value = (value ^ value >> shift) * factor % 2**64
    assert hash_of("a") == value ^ value >> 31
    assert np.uint64(hash_of("a")) == hash_words(["a"])[0]
