"""The differences between two texts: complete, as short as a reader needs them, and quick to find.

Knows pieces of texts, and how they are printed; knows nothing of where the texts come from.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_dedup.rendering.differences import Piece, Side, differences, shortened
from stream_dedup.rendering.reason import differences_shown
from stream_dedup.text.normal import Normaliser
from tests.unit.printed import printed

_TEXTS = st.text("一二三四。！\nab ", max_size=60)
_NORMAL = Normaliser()
_TAIPEI = "台湾ABC公司在台北发布消息，价格为100元。计划明年开业！"


def _of(pieces: list[Piece], side: Side) -> str:
    return "".join(piece.text for piece in pieces if piece.side in {Side.BOTH, side})


@given(first=_TEXTS, second=_TEXTS)
def test_pieces_give_back_both_texts(first: str, second: str) -> None:
    """The common pieces plus those of one text, in order, are that text: exactly the first, the second by its forms."""
    pieces = differences(first, second, _NORMAL)
    assert _of(pieces, Side.FIRST) == first
    assert _NORMAL("".join(_of(pieces, Side.SECOND).split())) == _NORMAL("".join(second.split()))
    assert all(piece.text for piece in pieces)


@pytest.mark.parametrize(
    "other",
    [
        "臺灣ABC公司在臺北發布消息，價格為100元。計劃明年開業！",
        "台湾ＡＢＣ公司在台北发布消息,价格为１００元。计划明年开业!",
        "台湾abc公司在台北发布消息，价格为100元。计划明年开业！",
        "".join(f"{character} " for character in _TAIPEI),
        "\u3000" + "\u200b".join(_TAIPEI) + "\n",
        "台湾ABC公司\n在台北发布消息，价格为100元。\n\n计划明年开业！",
    ],
    ids=["traditional", "full width", "lower case", "blanks", "invisible", "line breaks"],
)
def test_what_counts_as_equal_is_no_difference(other: str) -> None:
    """Script, width, case, blanks and invisible characters do not differ, and beside a real edit only that is shown."""
    for first, second in ((_TAIPEI, other), (other, _TAIPEI)):
        assert differences(first, second, _NORMAL) == [Piece(Side.BOTH, first)]
        edited = differences(first + "门票免费。", second, _NORMAL)
        assert edited == [Piece(Side.BOTH, first), Piece(Side.FIRST, "门票免费。")]
    assert "identical, except for" in printed(differences_shown(_TAIPEI, other, _NORMAL, marks=True))


def test_forms_of_the_script_differ_if_the_service_tells_them_apart() -> None:
    """Where traditional characters are not simplified, they are marked."""
    pieces = differences("台湾的消息", "台灣的消息", Normaliser(simplify=False))
    assert [Piece(Side.FIRST, "湾"), Piece(Side.SECOND, "灣")] == [one for one in pieces if one.side is not Side.BOTH]


def test_combining_marks_count_with_their_letters() -> None:
    """A composed letter and one with its mark after it are the same; a letter without the mark is another."""
    assert differences("caf\u00e9 开业", "cafe\u0301 开业", _NORMAL) == [Piece(Side.BOTH, "caf\u00e9 开业")]
    assert Piece(Side.SECOND, "e ") in differences("caf\u00e9 开业", "cafe 开业", _NORMAL)


def test_edited_sentence_differs_in_its_characters_alone() -> None:
    """A swapped name, a removed sentence and an inserted one are each shown as such."""
    first = "今天上午，石桥镇举行庙会。来了三千人。天气晴。"
    second = "今天上午，柳河镇举行庙会。天气晴。门票免费。"
    assert differences(first, second, _NORMAL) == [
        Piece(Side.BOTH, "今天上午，"),
        Piece(Side.FIRST, "石桥"),
        Piece(Side.SECOND, "柳河"),
        Piece(Side.BOTH, "镇举行庙会。"),
        Piece(Side.FIRST, "来了三千人。"),
        Piece(Side.BOTH, "天气晴。"),
        Piece(Side.SECOND, "门票免费。"),
    ]


@pytest.mark.parametrize(
    ("first", "second"),
    [("3120.55", "3098.12"), ("１２，３４５", "1 2 , 3 4 6"), ("19:30", "19:35"), ("2025", "20253")],
    ids=["decimal", "thousands", "time", "longer"],
)
def test_numbers_differ_as_a_whole(first: str, second: str) -> None:
    """A number that changed is shown whole, even where both texts have the same digits, and the same number is not."""
    begins, ends = "沪指今天100点收报", "点，比昨天低。"
    assert differences(f"{begins}{first}{ends}", f"{begins}{second}{ends}", _NORMAL) == [
        Piece(Side.BOTH, begins),
        Piece(Side.FIRST, first),
        Piece(Side.SECOND, second),
        Piece(Side.BOTH, ends),
    ]


def test_number_between_two_edits_is_in_both() -> None:
    """A single character between two edits is a coincidence, but not a whole number."""
    pieces = differences("今天上午石桥镇1500柳河镇举行庙会。", "今天上午东风村1500西坡村举行庙会。", _NORMAL)
    assert Piece(Side.BOTH, "1500") in pieces


def test_sentences_with_little_in_common_are_told_whole() -> None:
    """If two sentences share less than three tenths, they are shown as replaced, without common characters."""
    first, second = "春风吹过了整个村庄。", "股票今天又跌了不少。"
    assert differences(first, second, _NORMAL) == [Piece(Side.FIRST, first), Piece(Side.SECOND, second)]


def test_long_text_is_kept_short_around_its_differences() -> None:
    """Of what both texts have, only some characters next to each difference are shown."""
    story = "".join(f"第{n}句话说的是另一件事情。" for n in range(300))
    pieces = shortened(differences(story, story[:1800] + "多出一句。" + story[1800:], _NORMAL), 20)
    assert [len(piece.text) for piece in pieces if piece.side is Side.BOTH] == [23, 23]
    assert Piece(Side.SECOND, "多出一句。") in pieces


def test_texts_of_a_hundred_thousand_characters_are_compared() -> None:
    """A long text rewritten from end to end is shown as replaced, without an expensive comparison."""
    first, second = "甲乙丙丁戊己庚辛" * 12_500, "子丑寅卯辰巳午未" * 12_500
    assert differences(first, second, _NORMAL) == [Piece(Side.FIRST, first), Piece(Side.SECOND, second)]


def test_sentences_repeated_again_and_again_take_no_longer() -> None:
    """Two sentences that alternate in thousands are not looked for, but those beside what is found are the same."""
    end = "末句在此。" + "好。" * 20
    for one, other in ("好坏", "坏好", "是否", "否是", "多少", "少多"):
        first, second = f"{one}。{other}。" * 980 + end, f"{other}。{one}。{one}。" * 650 + end
        pieces = differences(first, second, _NORMAL)
        assert "".join(text for side, text in pieces if side is not Side.SECOND) == first
        assert "".join(text for side, text in pieces if side is not Side.FIRST) == second
        assert pieces[-1].text.endswith(end)
        assert pieces[-1].side is Side.BOTH


def test_differences_have_signs_where_there_are_no_colours() -> None:
    """In a pipe, removals and additions are marked by signs, and equal texts are reported in words."""
    shown = printed(differences_shown("我买了十个苹果回家。", "我买了三只苹果回家。", _NORMAL, marks=True))
    assert "我买了[-十个-]{+三只+}苹果回家。" in shown
    assert "the two texts are identical" in printed(differences_shown("一样。", "一样。", _NORMAL, marks=True))
