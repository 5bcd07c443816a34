"""Normal text is what Unicode, OpenCC and the removal of HTML make of a text, and nothing else."""

import sys
import time
import unicodedata
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opencc import OpenCC

from stream_dedup.compiled.hashing import code_points
from stream_dedup.text.normal import Normaliser, word_table

_INVISIBLE = {"Cf", "Cs"}
_PLAIN = Normaliser(strip_html=False)
_NORMAL = Normaliser()
_ALPHABET = st.one_of(
    st.characters(min_codepoint=0x20, max_codepoint=0x24F),
    st.characters(min_codepoint=0x300, max_codepoint=0x30A),
    st.characters(min_codepoint=0x4E00, max_codepoint=0x9FA5),
    st.characters(min_codepoint=0xFF01, max_codepoint=0xFF5E),
    st.characters(min_codepoint=0x1F600, max_codepoint=0x1F64F),
    st.sampled_from("㎏①㈱ﬁ½Ⅳ臺灣體龍\u200b\u200d\u00ad\ufeff\ufe0f\ud83d，。！“”"),
)


_INVISIBLE_NAMES = ("VARIATION SELECTOR", "HANGUL FILLER", "SEONG FILLER", "GRAPHEME JOINER", "VOWEL INHERENT")


def _named_invisible(character: str) -> bool:
    return any(part in unicodedata.name(character, "") for part in _INVISIBLE_NAMES)


_SIMPLIFIER = OpenCC("t2s")


@cache
def _simple(character: str) -> str:
    return str(_SIMPLIFIER.convert(character)) if character >= "\u3400" else character


def _reference(text: str) -> str:
    """Return NFKC, lower case, without invisible and uncomposable marks, each character simplified by itself."""
    plain = unicodedata.normalize("NFKC", text).lower().replace("ς", "σ")
    seen = (
        character
        for character in plain
        if unicodedata.category(character) not in _INVISIBLE
        and not _named_invisible(character)
        and not unicodedata.combining(character)
    )
    return "".join(map(_simple, seen))


def _assigned() -> list[str]:
    unused = {"Cn", "Co", "Cs", "Cf", "Cc"}
    every = map(chr, range(0x110000))
    return [c for c in every if unicodedata.category(c) not in unused and not _named_invisible(c)]


def test_every_character_has_the_normal_form_of_unicode_and_opencc() -> None:
    """Each assigned character that remains one character becomes the simplified form of its lower-case NFKC."""
    forms = {c: unicodedata.normalize("NFKC", c).lower().replace("ς", "σ") for c in _assigned()}
    single = [c for c, form in forms.items() if len(form) == 1 and not unicodedata.combining(form)]
    han = [c for c in single if forms[c] >= "\u3400"]
    # One per line, or OpenCC would convert phrases.
    lines = _SIMPLIFIER.convert("\n".join(map(forms.__getitem__, han))).split("\n")
    simple = {c: line for c, line in zip(han, lines, strict=True) if len(line) == 1}
    normal = [
        character
        for start in range(0, len(single), 64)
        for character in _PLAIN("\n".join(single[start : start + 64])).split("\n")
    ]
    got = dict(zip(single, normal, strict=True))
    assert {f"{ord(c):X}": form for c, form in got.items() if form != simple.get(c, forms[c])} == {}


_LONGEST = 8  # longer expansions of one character are dropped


def test_every_character_without_a_shape_is_removed() -> None:
    """Whatever Unicode's names call a selector, filler or joiner is invisible, in composed texts and in others."""
    shapeless = [c for c in map(chr, range(0x110000)) if _named_invisible(c)]
    assert {"\u3164", "\u115f", "\u034f", "\U000e0100", "\u180b"} <= set(shapeless)
    assert {c for c in shapeless if _PLAIN(f"天{c}气") != "天气" or _PLAIN(f"天{c}℃") != "天°c"} == set()


def test_text_never_grows_to_many_times_its_length() -> None:
    """A million copies of the character that NFKC expands to eighteen leave nothing, not eighteen million."""
    assert len(_PLAIN("\ufdfa" * 1000 + "字℃")) == 3


def test_every_character_that_expands_has_the_normal_form_of_unicode() -> None:
    """Each character that NFKC expands becomes that expansion, without uncomposable marks."""
    wrong = {}
    for character in _assigned():
        if 1 < len(unicodedata.normalize("NFKC", character).lower()) <= _LONGEST and character != "…":
            got = _PLAIN(character)
            if got != _reference(character):
                wrong[f"{ord(character):X}"] = (got, _reference(character))
    assert wrong == {}


@pytest.mark.parametrize(
    ("raw", "normal"),
    [
        ("ＡＢＣ　１２３！", "abc 123!"),
        ("iPhone 15 Pro", "iphone 15 pro"),
        ("臺灣與國際體壇", "台湾与国际体坛"),
        ("㎏ ① ㈱ ﬁ Ⅳ", "kg 1 (株) fi iv"),
        ("零\u200b宽\u200c字\u200d符\ufeff", "零宽字符"),
        ("co\u00adoperate", "cooperate"),
        ("左\u202e右\u2066中\u2069", "左右中"),
        ("半\ud83d个", "半个"),
        ("👨\u200d👩\u200d👧好👍🏽❤\ufe0f", "👨👩👧好👍🏽❤"),
        ("等等……", "等等……"),
        ("25℃……\u0301等等…①…", "25°c……等等…1…"),
        ("cafe\u0301 CAFÉ", "café café"),
        ("q\u0301x", "qx"),
        ("ｱｲｳ", "アイウ"),
        ("\u2f00\uf900", "一岂"),
        ("", ""),
    ],
)
def test_text_becomes_its_normal_form(raw: str, normal: str) -> None:
    """Width, case, script, invisible characters, emoji and accents are each normalised to one form."""
    assert _NORMAL(raw) == normal


def test_real_texts_become_what_unicodedata_and_opencc_make_of_them(bodies: list[str]) -> None:
    """For the hand-written articles, the table gives the same result as the two libraries."""
    for body in bodies:
        raw = body.replace("…", "")
        assert _PLAIN(raw) == _reference(raw)


def test_traditional_articles_become_the_simplified_ones(bodies: list[str]) -> None:
    """An article in traditional characters has the normal form of its characters simplified one by one."""
    traditional = OpenCC("s2t")
    for body in bodies[:40]:
        raw = traditional.convert(body.replace("…", ""))
        assert _PLAIN(raw) == _reference(raw)


def test_traditional_characters_stay_where_the_settings_say_so() -> None:
    """Without `simplify`, the script is unchanged, but width and case are still normalised."""
    assert Normaliser(simplify=False)("臺灣ＡＩ") == "臺灣ai"


@given(st.text(_ALPHABET, max_size=40))
def test_any_text_becomes_what_unicodedata_and_opencc_make_of_it(raw: str) -> None:
    """This holds for random Latin, marks, Han, full-width forms, emoji and invisible characters."""
    assert _PLAIN(raw) == _reference(raw)


@given(st.text(_ALPHABET, max_size=40) | st.text(max_size=40))
def test_normal_text_is_its_own_normal_form(raw: str) -> None:
    """Normalising twice is the same as normalising once."""
    once = _PLAIN(raw)
    assert _PLAIN(once) == once


def test_normal_articles_are_their_own_normal_form(bodies: list[str]) -> None:
    """This also holds with HTML removed, for real articles with markup."""
    for body in bodies:
        once = _NORMAL(f"<div class='a'><p>{body}&nbsp;</p><br/></div>")
        assert _NORMAL(once) == once


@given(st.lists(st.text(_ALPHABET, max_size=20) | st.sampled_from(["<p>甲</p>", "乙&amp;丙", "", "丁"]), max_size=8))
def test_a_batch_is_its_texts_one_by_one(raws: list[str]) -> None:
    """Texts normalised in a batch have the same normal form as each by itself."""
    normal = _NORMAL.all(raws)
    assert [normal.text(place) for place in range(len(normal))] == [_NORMAL(raw) for raw in raws]


@given(st.lists(st.sampled_from(["甲", "e", "\u0301", "℃", "<", "\u200d", "ΟΣ", "ﾞ", "ｶ", "乙" * 20]), max_size=30))
def test_what_is_composed_does_not_depend_on_the_distance(pieces: list[str]) -> None:
    """Characters that expand or combine are normalised alike whether adjacent, far apart or in runs."""
    raw = "".join(pieces)
    assert _PLAIN(raw) == _reference(raw)


def test_marks_in_excess_are_left_out() -> None:
    """Of a run of combining marks, the first thirty are kept: sorting 200,000 would take minutes."""
    for one in ("\u0f73", "\u0f75", "\u0f81", "\uff9e\u0323"):  # which consist of marks
        assert _PLAIN("中" + one * 200_000 + "x").startswith("中")
    assert _PLAIN("e" + "\u0301" * 29 + "\u0323" * 200_000 + "x") == "\u1eb9x"


@given(st.text(max_size=40))
def test_code_points_are_those_of_the_text(raw: str) -> None:
    """A normal text's code points spell its string, which can be encoded as UTF-8."""
    normal = _NORMAL(raw)
    assert _NORMAL.all([raw]).points.tolist() == [ord(character) for character in normal]
    normal.encode()


@given(st.text(st.characters() | st.just("\ud83d"), max_size=20))
def test_code_points_of_raw_text_are_python_s(raw: str) -> None:
    """The code points of any string, including lone surrogates, are the `ord` of its characters."""
    assert list(code_points(raw)) == [ord(character) for character in raw]


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ("<p>第一段</p><p>第二段</p>", ["第一段", "第二段"]),
        ("上<br>下<br/>左<BR />右", ["上", "下", "左", "右"]),
        ("<b>粗</b>体<em class='x'>字</em>", ["粗体字"]),
        ("AT&amp;T&nbsp;&#20013;&#x6587;&hellip;", ["at&t", "中文…"]),
        ("头<script type='a'>var a = '<b>';\nrun();</script>尾", ["头尾"]),
        ("头<STYLE>p {color: red}</STYLE>尾", ["头尾"]),
        ("头<!-- 注 <b> 释 -->尾", ["头尾"]),
        ("头<!-- 注<div class='a'>正文</div><p>尾</p>", ["头", "注", "正文", "尾"]),
        ("头<style>p {}</style>中<style><p>尾</p>", ["头中", "尾"]),
        ("头<style>p {}</styles>中<b>尾</b></STYLE >", ["头"]),
        ("头<script>a()</SCRIPT>尾", ["头尾"]),
        ("头<script>a()</scripts>中<b>尾</b>", ["头a()中尾"]),
        ("头<script>if (a<b--> 0) b();</script>中<!-- <p class='a' -->尾<!-- 注 -->", ["头中尾"]),
        ("头<!--[if !mso]><!-->正文<!--<![endif]-->中<!-->尾<!--->末<!-- 注 -->", ["头正文中尾末"]),
        ("<section>上</section><section>下</section><blockquote>引</blockquote>", ["上", "下", "引"]),
        ("<table><tr><td>11</td><td>0</td></tr></table>", ["11", "0"]),
        ("图<img src=\"a.png\" alt='图'/>字", ["图字"]),
        ("图<img alt=\"甲>乙\" src='a>b.png'>字", ["图字"]),
        ('<a href="a.html>甲</a><p class="b">乙</p>', ["甲", "乙"]),
        ("图<img alt='甲'>约翰's 5 > 3", ["图约翰's", "5", ">", "3"]),
        ("头<o:p>中</o:p><my-box class='a'>尾</my-box>", ["头中尾"]),
        ('上<a title="甲>乙 "丙" 丁</a>下', ["上乙", '"丙"', "丁下"]),
        ("1 < 2 & 3 > 2", ["1", "<", "2", "&", "3", ">", "2"]),
        ("若 x<5 则 y>3", ["若", "x<5", "则", "y>3"]),
        ("<3 爱心 >_<", ["<3", "爱心", ">_<"]),
        (f'<p style="{"margin: 0px; " * 99}">段</p>', ["段"]),
        (f"图<img alt='' src = 'data:image/png;base64,{'iVBORw0KGgo' * 999}' hidden/>字", ["图字"]),
        (f"图<img data-src='{'iVBORw0KGgo' * 99}'/>字", ["图字"]),
        (f"图<img hidden src=data:{'iVBORw0KGgo' * 99}= alt=x />字", ["图字"]),
        (f"若 a<b {'而' * 600} 则 c>d", ["若", "a<b", "而" * 600, "则", "c>d"]),
        ("&lt;p&gt;转义&lt;/p&gt;", ["转义"]),
        (f"上&#{'1' * 5_000};下&#{'0' * 5_000}65;左&amp;#{'9' * 100_000};右", ["上\ufffd下\ufffd左\ufffd右"]),
        (f"上&#{'1' * 5_000}", ["上\ufffd"]),
        ("&amp;lt;p&amp;gt;两次&amp;nbsp;转义&amp;lt;/p&amp;gt; AT&amp;amp;T", ["两次", "转义", "at&t"]),
    ],
)
def test_left_overs_of_html_go_and_comparisons_stay(raw: str, words: list[str]) -> None:
    """Tags, entities, scripts, styles and comments are removed; block tags break lines; a bare `<` or `&` is text."""
    assert _NORMAL(raw).split() == words


def test_references_of_more_digits_than_python_may_parse_are_no_error() -> None:
    """An administrator can lower the limit of 4,300 digits to 640."""
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(sys.int_info.str_digits_check_threshold)
    try:
        assert _NORMAL(f"上&#{'1' * 640};中&#{'1' * 641};下") == "上\ufffd中\ufffd下"
    finally:
        sys.set_int_max_str_digits(before)


def test_html_stays_where_the_settings_say_so() -> None:
    """Without `strip_html`, tags and entities are text."""
    assert _PLAIN("<p>甲&amp;乙</p>") == "<p>甲&amp;乙</p>"


def test_word_characters_are_letters_digits_and_han() -> None:
    """Word characters are those that Python calls alphanumeric, not punctuation or emoji."""
    table = word_table()
    assert all(table[ord(character)] for character in "aZ9中文éあ한ß")
    assert not any(table[ord(character)] for character in " ，。…!?-_👍\n")


@pytest.mark.parametrize(
    ("raw", "composed"),
    [("ｶﾞｿﾘﾝ", "ガソリン"), ("ﾊﾟﾘ", "パリ"), ("e\u0340te", "ète"), ("\u1112\u1161\u11ab", "한")],
    ids=["half-width voiced mark", "half-width semi-voiced mark", "tone mark", "Hangul jamo"],
)
def test_characters_that_nfkc_composes_are_composed(raw: str, composed: str) -> None:
    """Composition also takes place in texts without characters that expand."""
    assert unicodedata.normalize("NFKC", raw) == composed
    assert _NORMAL(raw) == composed


@pytest.mark.parametrize("word", ["ΟΔΟΣ", "\u1112\u1161\u11ab"])
def test_normal_form_of_a_word_does_not_depend_on_another_word(word: str) -> None:
    """A ligature or an accent elsewhere in a text does not change a word."""
    assert _NORMAL(word + " ﬁ").split()[0] == _NORMAL(word)


_ENDLESS_TAG = "<a" + " b=c" * 50_000


@pytest.mark.parametrize(
    ("hostile", "left"),
    [
        ("<script>" * 25_000, ""),
        ("<style>" * 28_571, ""),
        ("<!--" * 50_000, ""),
        (_ENDLESS_TAG, _ENDLESS_TAG),  # it is text, since it never ends
    ],
    ids=["scripts", "styles", "comments", "attributes"],
)
def test_unclosed_tags_cost_linear_time(hostile: str, left: str) -> None:
    """A hostile body of 200,000 characters of unclosed tags or of their attributes is normalised in 0.5 s."""
    _NORMAL("<a>é")  # its loops are loaded by then
    started = time.process_time()
    assert _NORMAL(hostile) == left
    assert time.process_time() - started < 0.5
