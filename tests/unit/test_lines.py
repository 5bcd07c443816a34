"""Lines at the ends of articles: which are considered, which are removed, and how they are numbered."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_dedup import Article
from stream_dedup.arrays import U64
from stream_dedup.compiled.hashing import empty_table, place_all
from stream_dedup.text.content import Contents
from stream_dedup.text.lines import NOTHING_LEARNT, WithoutSiteLines, remove_site_lines, site_number, site_of
from stream_dedup.text.normal import Normaliser

_NORMAL = Normaliser()
_SITE = site_number("甲报")
_POOL = [
    "欢迎阅读甲报网络版。",
    "更多内容请看客户端！\n",
    "今天上午大桥通车\n",
    "市民乘车经过大桥。\n",
    "短句。",
    "\n",
    " \n",
]
_SENTENCE = re.compile(r"[^。！\n]*[。！\n]+|[^。！\n]+$")


class _One(NamedTuple):
    """The result of `remove_site_lines` for one text."""

    keys: list[int]
    text: str
    taken: bool
    bare: bool


def _remove_site_lines(texts: Sequence[str], sites: Sequence[int], learnt: U64) -> WithoutSiteLines:
    contents = Contents(_NORMAL.all(texts), np.zeros(len(texts), np.bool_))
    return remove_site_lines(contents, np.array(sites, np.uint64), learnt)


def _of(peeled: WithoutSiteLines, place: int) -> _One:
    contents, lines = peeled
    return _One(
        lines.of(place).tolist(),
        contents.texts.text(place),
        bool(lines.taken[place]),
        bool(contents.only_boilerplate[place]),
    )


def _peeled(text: str, learnt: U64 = NOTHING_LEARNT, site: int = _SITE) -> _One:
    return _of(_remove_site_lines([text], [site], learnt), 0)


def _numbers(*lines: str) -> list[int]:
    """Return the numbers of lines, each found in a text of its own."""
    numbers: list[int] = [_peeled(line).keys[1] for line in lines]
    return numbers


def _learnt(*lines: str) -> U64:
    table = empty_table(len(lines) + 1)
    place_all(table, np.array(_numbers(*lines), np.uint64))
    return table


def _expected(text: str, learnt: set[str]) -> tuple[list[str], str]:
    """Return the lines to count and what is left of a text, one sentence after the other."""
    sentences: list[str] = _SENTENCE.findall(text)
    words = ["".join(filter(str.isalnum, sentence)) for sentence in sentences]
    places, counted, gone = list(range(len(sentences))), list[str](), set[int]()
    for inwards in (0, -1):
        own = looked = 0
        while places and own < 3 and looked < 16:
            place = places.pop(inwards)
            if len(words[place]) < 6:
                continue
            looked += 1
            counted += [words[place]] if words[place] not in counted else []
            if words[place] in learnt:
                gone.add(place)
            else:
                own += 1
    return counted, "".join(sentence for place, sentence in enumerate(sentences) if place not in gone)


@given(st.lists(st.sampled_from(_POOL), max_size=45), st.sets(st.sampled_from(_POOL[:3])))
def test_lines_are_those_of_a_plain_model(sentences: list[str], learnt: set[str]) -> None:
    """At either end, three unlearnt lines and the learnt ones among them, at most 16; learnt ones are removed."""
    text = _NORMAL("".join(sentences))
    known = {"".join(filter(str.isalnum, line)) for line in learnt}
    counted, left = _expected(text, known)
    peeled = _peeled(text, _learnt(*learnt))
    assert peeled.keys == ([_SITE, *_numbers(*counted)] if counted else [])
    assert (peeled.text, peeled.taken) == (left, left != text)


def test_worked_text() -> None:
    """Of eight sentences, the outer three on either side are considered; learnt lines do not use up these three."""
    story = [f"{mark}地今天举行了运动会。" for mark in "甲乙丙丁戊己庚辛"]
    assert _peeled("".join(story)).keys == [_SITE, *_numbers(*story[:3], *story[:4:-1])]
    peeled = _peeled("".join(story), _learnt(story[0], story[7], story[4]))
    assert peeled.keys == [_SITE, *_numbers(*story[:4], *story[:3:-1])]
    assert peeled.text == "".join([*story[1:4], *story[5:7]])


def test_line_is_its_word_characters() -> None:
    """Punctuation, whitespace and script make no difference; a number or a character does."""
    same = _numbers("欢迎阅读甲报网络版。", "歡迎閱讀，甲報 網絡版！", "欢迎阅读“甲报”网络版")
    assert len(set(same)) == 1
    assert len(set(_numbers("第12期节目预告。", "第21期节目预告。", "第12期节目预报。"))) == 3


def test_lines_of_sites_and_scopes_never_meet() -> None:
    """A line has a different number at each site and in each scope, and the site's number can be derived from it."""
    sites = [site_number("甲报"), site_number("乙报"), site_number("甲报", "租户"), site_number("报", "甲")]
    keys = [_peeled(_POOL[0], site=site).keys for site in sites]
    assert len({number for pair in keys for number in pair}) == 8
    assert [[site_of(np.uint64(number)) for number in pair] for pair in keys] == [[site, site] for site in sites]


@pytest.mark.parametrize(
    ("source", "url", "site"),
    [
        ("甲报", "https://a.example/1", "甲报"),
        ("", "https://News.A.example/1?x=2", "news.a.example"),
        ("", "https://[::1", ""),
        ("", "1.html", ""),
        ("", "", ""),
    ],
)
def test_site_is_the_source_or_the_host(source: str, url: str, site: str) -> None:
    """The site is the article's source or, failing that, the host of its URL, if it has a valid one."""
    assert Article("1", "正文", url=url, source=source).site == site


def test_nothing_is_known_of_an_article_without_site() -> None:
    """If neither source nor host is known, no line is counted and none removed."""
    peeled = _peeled(_POOL[0], _learnt(_POOL[0]), site_number(""))
    assert (peeled.keys, peeled.taken) == ([], False)


def test_text_of_nothing_but_learnt_lines_is_bare() -> None:
    """Nothing is left of a shell; a text of which a short sentence is left is not bare."""
    learnt = _learnt(*_POOL[:2])
    assert _peeled("".join(_POOL[:2]), learnt).bare
    assert not _peeled("".join([*_POOL[:2], "短句。"]), learnt).bare


@given(
    st.lists(st.tuples(st.lists(st.sampled_from(_POOL), max_size=9), st.sampled_from(["甲报", "乙报", ""])), max_size=6)
)
def test_a_batch_is_its_texts_one_by_one(articles: list[tuple[list[str], str]]) -> None:
    """Texts processed together have the same lines, and leave the same text, as each by itself."""
    texts, sites = ["".join(lines) for lines, _ in articles], [site_number(name) for _, name in articles]
    together = _remove_site_lines(texts, sites, _learnt(*_POOL[:2]))
    alone = [_peeled(text, _learnt(*_POOL[:2]), site) for text, site in zip(texts, sites, strict=True)]
    assert [_of(together, place) for place in range(len(texts))] == alone


def test_what_was_bare_before_stays_bare() -> None:
    """A text of which the filter left nothing is bare whether or not site lines are removed as well."""
    bare = np.array([True, True, False])
    contents = Contents(_NORMAL.all(["", "。" + _POOL[0], "。"]), bare)
    assert (
        remove_site_lines(contents, np.full(3, _SITE, np.uint64), _learnt(_POOL[0])).contents.only_boilerplate.tolist()
        == bare.tolist()
    )


@pytest.mark.parametrize(
    ("learnt", "since", "affected"),
    [
        ([], [], [False, False, False]),
        ([], _POOL[:1], [True, False, False]),
        (_POOL[:1], [], [True, False, False]),
        (_POOL[:1], _POOL[1:2], [True, True, False]),
        (_POOL[:2], _POOL[1::-1], [False, False, False]),
        ([], _POOL[3:4], [False, True, False]),
    ],
)
def test_other_learnt_lines_affect_the_articles_that_have_them(
    learnt: list[str], since: list[str], affected: list[bool]
) -> None:
    """Whether one more is learnt or one less; the lines of another site do not matter."""
    texts, sites = [_POOL[0] + _POOL[2], _POOL[1] + _POOL[3], _POOL[0] + _POOL[1]], [_SITE, _SITE, site_number("乙报")]
    lines = _remove_site_lines(texts, sites, _learnt(*learnt)).lines
    assert lines.affected_by(_learnt(*learnt), _learnt(*since)).tolist() == affected


def test_part_of_a_batch_has_the_lines_of_its_articles() -> None:
    """A part of a batch equals the batch of these articles."""
    texts = ["".join(_POOL[:3]), "短句。", _POOL[3], _POOL[0]]
    part = _remove_site_lines(texts, [_SITE] * 4, _learnt(_POOL[0])).lines.part(1, 4)
    expected = _remove_site_lines(texts[1:], [_SITE] * 3, _learnt(_POOL[0])).lines
    assert [part.of(place).tolist() for place in range(3)] == [expected.of(place).tolist() for place in range(3)]
    assert part.taken.tolist() == expected.taken.tolist() == [False, False, True]
