"""The compiled precise mode gives the words of rjieba, for any text and user words."""

from itertools import pairwise

import numpy as np
import pytest
import rjieba
from hypothesis import given
from hypothesis import strategies as st

from stream_dedup.compiled.hashing import EMPTY, code_points, hash_words
from stream_dedup.text.dictionary import jieba_dictionary, jieba_folder, parse
from stream_dedup.text.normal import Normaliser
from stream_dedup.text.precise.double_array import double_array
from stream_dedup.text.precise.nodes import Nodes
from stream_dedup.text.precise.segmenter import precise_segmenter
from stream_dedup.text.segment import segmenter
from stream_dedup.text.texts import Texts
from stream_dedup.text.user_words import UserWord

_USER = (
    UserWord("云栈帆影", None, "n"),
    UserWord("研究", 1, "v"),  # jieba has it with another frequency
    UserWord("的研究", 900_000, "n"),
    UserWord("covid-19", 300, "nz"),
    UserWord("5g手机", 20, "n"),
    UserWord("科·罗", 5_000, "nr"),  # a sign ends a block: it is never found
    UserWord("𦡦𦡦院", 40, "n"),
    UserWord("γ", 40, "n"),
    UserWord("ab", 7, "eng"),
    UserWord("研究", 3, "v"),
)
_SIGNS = "+#&._%-"
_NORMAL = Normaliser()
_PIECES = st.one_of(
    st.sampled_from([entry.word for entry in _USER]),
    st.sampled_from("的一是在了不和有大这主中人上为们国常在路研究生命科学结婚和尚未结合成分子时"),
    st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), max_size=4),
    st.text(st.sampled_from("㐀䶵﨑豈𠀀𦡦鿕鿖鿿龥這裡頭髮鬱"), max_size=3),
    st.text(st.sampled_from("abzAZ0159" + _SIGNS), max_size=8),
    st.sampled_from(["covid-19", "3.14%", "1.2.3", "v2.0-rc_1", "a..b", "5%%", "c++", "at&t", "江南style", "1号店"]),
    st.text(st.sampled_from("，。！？、…·“”《》（）∶①⑩"), max_size=2),
    st.text(st.sampled_from(" \t\r\n\u3000\u00a0\u2028"), max_size=3),
    st.text(st.sampled_from("👍🏽🇨🇳é５Ａγ가あ"), max_size=3),
)
_TEXTS = st.lists(_PIECES, max_size=12).map("".join)


def _rjieba(words: tuple[UserWord, ...]) -> rjieba.Jieba:
    tokenizer = rjieba.Jieba()
    for entry in words:
        tokenizer.add_word(entry.word, entry.frequency, entry.tag)
    return tokenizer


_REFERENCES: dict[tuple[UserWord, ...], rjieba.Jieba] = {words: _rjieba(words) for words in ((), _USER)}


def _cut(text: str, words: tuple[UserWord, ...], *, hmm: bool) -> list[str]:
    return segmenter("compiled", words, hmm=hmm)(Texts.of_strings([text])).of(0)


@pytest.mark.parametrize("words", [(), _USER], ids=["jieba's words", "user's words"])
@pytest.mark.parametrize("hmm", [True, False])
@given(text=_TEXTS)
def test_random_text_is_cut_as_rjieba_cuts_it(text: str, words: tuple[UserWord, ...], *, hmm: bool) -> None:
    """Han of all blocks, letters, digits, signs, whitespace, emoji and user words in any order are cut as by rjieba."""
    assert _cut(text, words, hmm=hmm) == _REFERENCES[words].cut(text, hmm)


@pytest.mark.parametrize("words", [(), _USER], ids=["jieba's words", "user's words"])
@pytest.mark.parametrize("hmm", [True, False])
def test_articles_are_cut_as_rjieba_cuts_them(words: tuple[UserWord, ...], bodies: list[str], *, hmm: bool) -> None:
    """The hand-written articles have the words of rjieba."""
    for body in bodies:
        text = _NORMAL(body)
        assert _cut(text, words, hmm=hmm) == _REFERENCES[words].cut(text, hmm)


@pytest.mark.parametrize("hmm", [True, False])
def test_every_word_of_the_dictionary_is_cut_as_rjieba_cuts_it(*, hmm: bool) -> None:
    """All words of jieba's dictionary, in a row and each before a newline, are cut as by rjieba."""
    words = jieba_dictionary()
    text = words.points.tobytes().decode("utf-32-le")
    lines = "\n".join(text[start:stop] for start, stop in pairwise([0, *words.stops[::7].tolist()]))
    assert _cut(lines, (), hmm=hmm) == _REFERENCES[()].cut(lines, hmm)


def test_words_of_jieba_s_own_documentation() -> None:
    """The sentences of jieba's README are cut as printed there; 杭研 is not in the dictionary: the model finds it."""
    assert "/".join(_cut("我来到北京清华大学", (), hmm=True)) == "我/来到/北京/清华大学"
    assert "/".join(_cut("他来到了网易杭研大厦", (), hmm=True)) == "他/来到/了/网易/杭研/大厦"
    assert "/".join(_cut("他来到了网易杭研大厦", (), hmm=False)) == "他/来到/了/网易/杭/研/大厦"


@pytest.mark.parametrize("hmm", [True, False])
@given(text=_TEXTS)
def test_numbers_are_those_of_the_words_themselves(text: str, *, hmm: bool) -> None:
    """A word's number leads to its hash in the vocabulary; words without a letter, digit or Han character have none."""
    words = segmenter("compiled", _USER, hmm=hmm)(Texts.of_strings([text]))
    for word, number in zip(words.of(0), words.numbers.tolist(), strict=True):
        expected = hash_words([word])[0] if any(map(str.isalnum, word)) else EMPTY
        assert number == 0 or words.vocabulary.hashes[number] == expected
    assert words.vocabulary.hashes[0] == EMPTY


def test_words_of_the_dictionary_have_numbers() -> None:
    """A word of the dictionary is found by its number; 杭研, which the model finds, and punctuation have none."""
    words = segmenter("compiled", (), hmm=True)(Texts.of_strings(["他来到了网易杭研大厦。"]))
    assert [word for word, number in zip(words.of(0), words.numbers, strict=True) if number == 0] == ["杭研", "。"]


@pytest.mark.slow
def test_numbers_begin_with_the_most_frequent_words() -> None:
    """The five lines of the dictionary with the largest frequencies are the words 1 to 5."""
    lines = [line.split(" ") for line in (jieba_folder() / "dict.txt").read_text(encoding="utf-8").splitlines()]
    most = sorted(lines, key=lambda line: -int(line[1]))[:5]
    words = segmenter("compiled", (), hmm=True)(Texts.of_strings(["，".join(line[0] for line in most)]))
    assert words.numbers.tolist() == [1, 0, 2, 0, 3, 0, 4, 0, 5]


def test_of_equally_likely_ways_the_longer_first_word_is_taken() -> None:
    """A word as likely as its parts is kept whole, as in jieba, which takes the greatest (score, end)."""
    # 甲 and 乙 each have the whole total, 1: log 1 - log 1 = 0 for 甲乙 and for 甲 + 乙.
    alone = parse("乙 1 n\n甲 1 n\n甲乙 1 n\n")
    cut = precise_segmenter(alone, len(alone.stops), hmm=False)
    stops, counts, _, _ = cut(code_points("甲乙甲").copy(), np.array([0, 3]))
    assert stops.tolist() == [2, 3]
    assert counts.tolist() == [0, 2]


@pytest.mark.slow
def test_dictionary_is_that_of_the_file() -> None:
    """Words, frequencies and parts of speech are those obtained by splitting the file's lines."""
    lines = [line.split(" ") for line in (jieba_folder() / "dict.txt").read_text(encoding="utf-8").splitlines()]
    words = jieba_dictionary()
    text = words.points.tobytes().decode("utf-32-le")
    assert [text[start:stop] for start, stop in pairwise([0, *words.stops.tolist()])] == [line[0] for line in lines]
    assert words.frequencies.tolist() == [int(line[1]) for line in lines]
    assert [words.tags[tag] for tag in words.tag_of] == [line[2] for line in lines]


def test_user_words_stand_behind_those_of_the_dictionary() -> None:
    """Additional words follow those of the dictionary, with the frequency 0 if none is given."""
    more = parse("云 5 n\n石桥 7 ns\n").extended([UserWord("帆影", None, "vx"), UserWord("栈", 3, "n")])
    assert more.points.tolist() == code_points("云石桥帆影栈").tolist()
    assert more.stops.tolist() == [1, 3, 5, 6]
    assert more.frequencies.tolist() == [5, 7, 0, 3]
    assert [more.tags[tag] for tag in more.tag_of] == ["n", "ns", "vx", "n"]


def test_too_many_different_words_are_refused() -> None:
    """The error gives the numbers of words and cells, their limits, and the setting to change."""
    frequencies = np.ones(3, np.int64)
    nodes = Nodes(np.zeros(3, np.int32), np.zeros(3, np.uint16), frequencies, np.zeros(3, np.int32))
    with pytest.raises(
        ValueError, match=r"2,097,152, whose 3 prefixes .* at most 2,097,149 words .* text\.user_dictionary"
    ):
        double_array(nodes, 3, np.array([0, 1, 1 << 21]))


def test_too_many_different_characters_are_refused() -> None:
    """The error gives the number of characters, its limit, and the setting to change."""
    with pytest.raises(ValueError, match=r"84,\d{3} different characters: at most 65,534 .* text\.user_dictionary"):
        segmenter("compiled", (UserWord("".join(map(chr, range(0x10000, 0x10000 + 70_000))), 1, "n"),))
