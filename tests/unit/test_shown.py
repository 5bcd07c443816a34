"""Promises of what people read: differences are complete, columns align, and a terminal obeys no text from outside."""

import unicodedata
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, RenderableType

from stream_dedup.article import Relation, Source
from stream_dedup.ask.answers import (
    ClusterAnswer,
    LinkAnswer,
    MemberAnswer,
    MomentAnswer,
    PlaceAnswer,
    SimilarAnswer,
    SimilarAnswers,
)
from stream_dedup.ask.decisions import DecisionAnswer
from stream_dedup.shown.answers import bar, cluster_shown, similar_shown
from stream_dedup.shown.decision import decision_line
from stream_dedup.shown.differences import Piece, Side, differences, shortened
from stream_dedup.shown.plain import fitted, harmless
from stream_dedup.shown.reason import differences_shown

_TEXTS = st.text("一二三四。！\nab ", max_size=60)
_HOSTILE = "\x1b]0;owned\x07\x1b[31m[bold]:smile:\u202e"


def _width(text: str) -> int:
    """Return the cells that a text takes by Unicode's own table: two for wide and full-width characters."""
    return sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text if not unicodedata.combining(one))


def _printed(shown: RenderableType, width: int = 160) -> str:
    console = Console(file=StringIO(), width=width, color_system=None)
    console.print(shown)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def _of(pieces: list[Piece], side: Side) -> str:
    return "".join(piece.text for piece in pieces if piece.side in {Side.BOTH, side})


@given(first=_TEXTS, second=_TEXTS)
def test_pieces_give_back_both_texts(first: str, second: str) -> None:
    """What both have and what one has alone, in order, is that text: nothing is lost and nothing is made up."""
    pieces = differences(first, second)
    assert (_of(pieces, Side.FIRST), _of(pieces, Side.SECOND)) == (first, second)
    assert all(piece.text for piece in pieces)


def test_edited_sentence_differs_in_its_characters_alone() -> None:
    """A swapped name, a sentence left out and one put in are told as such."""
    first = "今天上午，石桥镇举行庙会。来了三千人。天气晴。"
    second = "今天上午，柳河镇举行庙会。天气晴。门票免费。"
    assert differences(first, second) == [
        Piece(Side.BOTH, "今天上午，"),
        Piece(Side.FIRST, "石桥"),
        Piece(Side.SECOND, "柳河"),
        Piece(Side.BOTH, "镇举行庙会。"),
        Piece(Side.FIRST, "来了三千人。"),
        Piece(Side.BOTH, "天气晴。"),
        Piece(Side.SECOND, "门票免费。"),
    ]


def test_sentences_with_little_in_common_are_told_whole() -> None:
    """Where two sentences share less than three tenths, no characters are picked out of them."""
    first, second = "春风吹过了整个村庄。", "股票今天又跌了不少。"
    assert differences(first, second) == [Piece(Side.FIRST, first), Piece(Side.SECOND, second)]


def test_long_text_is_kept_short_around_its_differences() -> None:
    """Of what both texts have only some characters beside each difference stay."""
    story = "".join(f"第{n}句话说的是另一件事情。" for n in range(300))
    pieces = shortened(differences(story, story[:1800] + "多出一句。" + story[1800:]), 20)
    assert [len(piece.text) for piece in pieces if piece.side is Side.BOTH] == [23, 23]
    assert Piece(Side.SECOND, "多出一句。") in pieces


def test_texts_of_a_hundred_thousand_characters_are_compared() -> None:
    """A long text that was rewritten from end to end is told as replaced, whatever it costs to say more."""
    first, second = "甲乙丙丁戊己庚辛" * 12_500, "子丑寅卯辰巳午未" * 12_500
    assert differences(first, second) == [Piece(Side.FIRST, first), Piece(Side.SECOND, second)]


def test_differences_have_signs_where_there_are_no_colours() -> None:
    """In a pipe what was taken away and what was added is told by signs, and equal texts in words."""
    shown = _printed(differences_shown("我买了十个苹果回家。", "我买了三只苹果回家。", marks=True))
    assert "我买了[-十个-]{+三只+}苹果回家。" in shown
    assert "the same to the character" in _printed(differences_shown("一样。", "一样。", marks=True))


@given(text=st.text("旱了五十 abcＡ，", max_size=40), cells=st.integers(2, 30))
def test_fitted_text_has_its_width(text: str, cells: int) -> None:
    """Whatever a text mixes of Chinese and others, it is cut or filled to the very cell."""
    shown = fitted(text, cells)
    assert _width(shown) == cells
    assert shown.startswith(text) or "…" in shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [("旱了五十天的村子", "旱了五十天的… "), ("北京", "北京          "), ("旱a五十天的村子下", "旱a五十天的村…")],
)
def test_chinese_is_fitted_by_its_two_cells(text: str, shown: str) -> None:
    """Fourteen cells hold six characters and an ellipsis, and one cell is left."""
    assert fitted(text, 14) == shown
    assert _width(fitted(text, 14)) == 14


def test_terminal_obeys_no_text() -> None:
    """Escape sequences, changes of direction and rich's markup are shown as they stand."""
    assert harmless(_HOSTILE) == "␛]0;owned␇␛[31m[bold]:smile:�"
    decision = DecisionAnswer(
        decision="unique", id=_HOSTILE, title=_HOSTILE, output=PlaceAnswer(topic="t", partition=0, offset=0)
    )
    for shown in (decision_line(decision), cluster_shown(_cluster(_HOSTILE))):
        printed = _printed(shown)
        assert "[31m[bold]:smile:" in printed
        assert not {"\x1b", "\x07", "\u202e"} & set(printed)


def _cluster(source: str) -> ClusterAnswer:
    link = LinkAnswer(
        matched="n-1",
        relation=Relation.NEAR,
        jaccard=0.9,
        containment=1.0,
        hamming=3,
        candidate_source=Source.LANDMARK,
        idf_epoch=2,
        stream_time=None,
    )
    members = [
        MemberAnswer(
            id=name,
            canonical=not copy,
            source=source if copy else "Reuters",
            published_at="2026-10-15T18:53:47.000Z",
            received_at=None,
            characters=100,
            link=link if copy else None,
        )
        for name, copy in (("n-1", False), ("第二篇", True), ("mixed-混合-3", True))
    ]
    return ClusterAnswer(
        number=1,
        scope="",
        canonical="n-1",
        copies=2,
        first_at=None,
        last_at=None,
        sources={source: 2},
        other_members=0,
        known=3,
        members=members,
        stretch_seconds=60,
        timeline=[MomentAnswer(at="2026-10-15T18:53:00Z", articles=3, sources=2)],
    )


def test_columns_align_whatever_is_in_them() -> None:
    """In a table with Chinese and Latin text each column begins at the same cell in each row."""
    lines = _printed(cluster_shown(_cluster("雁南都市报"))).splitlines()
    rows = [line for line in lines if line.startswith("2026-10-15 18:53:47")]
    assert len(rows) == 3
    assert {_width(row[: row.index("Reuters")]) for row in rows[:1]} == {
        _width(row[: row.index("雁南")]) for row in rows[1:]
    }
    assert len({_width(row[: row.index("landmark")]) for row in rows[1:]}) == 1


def test_similar_articles_are_in_columns_too() -> None:
    """A text that is like two articles has a row for each; what is no copy is called so."""
    articles = [
        SimilarAnswer(
            id=name,
            relation=relation,
            jaccard=0.5,
            containment=0.75,
            hamming=None,
            canonical=name,
            cluster=1,
            source="晚报",
            published_at=None,
            message=None,
        )
        for name, relation in (("一", Relation.NEAR), ("two", None))
    ]
    printed = _printed(similar_shown(SimilarAnswers(decision="duplicate", articles=articles, unseen_entries=7)))
    rows = [line for line in printed.splitlines() if "0.75" in line]
    assert len({_width(row[: row.index("0.75")]) for row in rows}) == 1
    assert "no copy" in rows[1]
    assert "7 newest entries are not searched yet" in printed


def test_bars_are_as_long_as_their_shares() -> None:
    """A half of eight cells is four, an eighth of a cell is seen, and what is not nothing has a bar."""
    assert [bar(share, 8).plain for share in (1.0, 0.5, 9 / 64, 0.0001)] == ["█" * 8, "████", "█▏", "▏"]
