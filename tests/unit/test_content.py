"""The content filter removes site lines and links, and nothing else."""

import re
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_dedup import Article, Relation
from stream_dedup.engine.dedup import Deduplicator
from stream_dedup.text.content import ContentFilter
from stream_dedup.text.lexicon import read_words, shipped_list
from stream_dedup.text.normal import Normaliser
from stream_dedup.text.texts import Texts

_NORMAL = Normaliser()
_MARKS = "。！!?？\n\r\v\f\x85\u2028\u2029."
_FILTER = ContentFilter(read_words(shipped_list("boilerplate.txt")), _NORMAL)
_SHELLS = [
    "责任编辑：王芳",
    "（责任编辑：李明）　来源：新华网",
    "免责声明：本文仅代表作者个人观点，与本站无关。未经授权，禁止转载！版权归原作者所有，如有侵权请联系删除。",
    "点击下载新闻客户端，随时随地看新闻。扫描二维码关注我们的微信公众号",
    "[图片]\n点击查看大图",
    "Copyright © 2026 Example. All rights reserved. Click here to download our app.",
    "阅读全文 https://news.example/a/20261122",
]


def _content(text: str) -> tuple[str, bool]:
    contents = _FILTER(_NORMAL.all([text]))
    return contents.texts.text(0), bool(contents.only_boilerplate[0])


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("今天下雨。责任编辑：王芳", "今天下雨。"),
        ("（记者李明）今天下雨。\n来源：新华网\n明天晴。", "(记者李明)今天下雨。\n明天晴。"),
        ("价格为3.5元。版權聲明：本文為原創。", "价格为3.5元。"),
        ("It rained. All rights reserved. It was 3.5 degrees.", "it rained. it was 3.5 degrees."),
        ("看这里http://t.cn/A6xYz很好", "看这里 很好"),
        ("今天下雨。", "今天下雨。"),
        ("据公报，明天起放假三天（来源：央视新闻）", "据公报,明天起放假三天"),
        ("（转自：时尚）这款相机的背面印有签名[图片]，很好看。", "这款相机的背面印有签名,很好看。"),
        ("（转自：时尚）这款相机很好看，责任编辑：王芳。明天见", "明天见"),
        ("明天起放假（来源：央视。后天见", "后天见"),
        ("明天起放假(c) copyright 2026。后天见", "后天见"),
        ("明天起放假（来源：央视［图］）。", "明天起放假)。"),
    ],
)
def test_worked_contents(text: str, left: str) -> None:
    """Sentences with a phrase are removed, in any script and width, or the brackets around it, or a link; no more."""
    content, bare = _content(text)
    assert (content.strip(), bare) == (left, False)


@pytest.mark.parametrize(
    "news",
    [
        "两家公司因未经许可使用他人字号对簿公堂，法院一审判赔一百万元。",
        "公司郑重声明上述报道失实，并表示将追究造谣者的责任。",
        "地铁今起支持扫描二维码过闸，老年卡照常刷卡。",
        "不少网友评论说今年的月饼小了一圈，店家回应称规格没变。",
        "小学要求家长下载APP打卡做作业，教育局回应：已叫停。",
        "首批欠薪企业名单公布，更多内容将于下周一发布。",
        "去年全国反假货币举报电话接听量同比增加三成。",
        "网店未经授权销售音像作品，著作权归谁成为庭审焦点。",
        "客服说公司已关注我们收到的投诉，点击进入官网可查进度。",
    ],
)
def test_news_about_what_sites_say_is_content(news: str) -> None:
    """A phrase must be what only a site says about its article, not what may be reported."""
    assert _content(news) == (_NORMAL(news), False)


def test_phrases_of_which_nothing_is_left_are_none() -> None:
    """A phrase that consists only of tags or invisible characters removes nothing."""
    texts = _NORMAL.all(["今天下雨。责任编辑：王芳"])
    with_nothing = ContentFilter(("\u200b", "<b>", "编辑"), _NORMAL)
    assert with_nothing(texts).texts.text(0) == ContentFilter(("编辑",), _NORMAL)(texts).texts.text(0) == "今天下雨。"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\v", "\f", "\x85", "\u2028", "\u2029"])
def test_a_line_ends_wherever_unicode_says_so(end: str) -> None:
    """A site's line goes alone, whatever ends the lines around it."""
    lines = ["台风今晨登陆", "来源：央视新闻", "救援队伍已赶赴一线，目前无伤亡。"]
    assert _content(end.join(lines))[0].split() == ["台风今晨登陆", "救援队伍已赶赴一线,目前无伤亡。"]


@given(st.text(st.sampled_from("今天下雨。！\n\r\u2028?.3 a"), max_size=60))
def test_text_without_phrases_or_links_stays(text: str) -> None:
    """Splitting into sentences loses nothing: without phrases, the content is the text."""
    marked = _NORMAL(text)
    assert _content(text + "\n责任编辑：王芳")[0].rstrip("\n") == marked.rstrip("\n")
    assert _content(text)[0] == marked


def _sentences(text: str) -> list[str]:
    """Split a text after runs of marks; a full stop alone ends a sentence only before whitespace."""
    sentences, start = list[str](), 0
    for place, (mark, following) in enumerate(pairwise(f"{text}甲"), start=1):
        if mark in _MARKS and following not in _MARKS and (mark != "." or following <= " "):
            sentences.append(text[start:place])
            start = place
    return [*sentences, text[start:]]


def _occurrences(sentence: str, phrases: tuple[str, ...]) -> list[tuple[int, int]]:
    """Return where each phrase begins and ends in a sentence."""
    starts = [(place, phrase) for place in range(len(sentence)) for phrase in phrases]
    return [(place, place + len(phrase)) for place, phrase in starts if sentence.startswith(phrase, place)]


def _brackets(sentence: str, starts: set[int]) -> list[tuple[int, int]]:
    """Return spans of brackets: from the last that opens, but not after a phrase, to the first that closes."""
    found, opened = list[tuple[int, int]](), -1
    for place, mark in enumerate(sentence):
        if mark == "(" and not (opened >= 0 and starts.intersection(range(opened, place))):
            opened = place
        elif mark == ")" and opened >= 0:
            found.append((opened, place + 1))
            opened = -1
    return found


def _kept(sentence: str, phrases: tuple[str, ...]) -> str:
    """Return a sentence without brackets that enclose a phrase; nothing if it has another phrase."""
    occurrences = _occurrences(sentence, phrases)
    enclosing = set[tuple[int, int]]()
    for start, stop in occurrences:
        around = [span for span in _brackets(sentence, {start for start, _ in occurrences}) if span[0] <= start]
        around = [span for span in around if stop <= span[1]]
        if not around:
            return ""
        enclosing.update(around)
    for first, last in sorted(enclosing, reverse=True):
        sentence = sentence[:first] + sentence[last:]
    return sentence


_PIECES = st.sampled_from([*"编辑@甲乙丙。.! \n1:/w()", "(编辑)", "(@", "甲乙丙)", "(甲", "www.", "http://"])


@given(st.lists(_PIECES, max_size=20).map("".join))
def test_lines_are_the_sentences_and_brackets_with_a_phrase(text: str) -> None:
    """For any phrases, links are removed first, then the brackets around a phrase, or the sentence that it is in."""
    phrases = ("编辑", "@", "甲乙丙", "甲丙", "(丙", "乙)", ")w", "甲乙")
    plain = re.sub(r"(?:https?://|www\.)[!-~]+", " ", text)
    kept = [_kept(sentence, phrases) for sentence in _sentences(plain)]
    contents = ContentFilter(phrases, _NORMAL)(Texts.of_strings([text]))
    assert contents.texts.text(0) == "".join(kept)
    assert contents.only_boilerplate.tolist() == ["".join(kept) != plain and not any(map(str.isalnum, "".join(kept)))]


@given(
    st.lists(st.sampled_from([*_SHELLS, "今天下雨。", "今天下雨。责任编辑：王芳", "见www.a.example。", ""]), max_size=9)
)
def test_a_batch_is_its_texts_one_by_one(texts: list[str]) -> None:
    """Texts filtered in a batch have the same content as each by itself."""
    together = _FILTER(_NORMAL.all(texts))
    alone = [_content(text) for text in texts]
    assert list(zip(together.texts.strings(), together.only_boilerplate.tolist(), strict=True)) == alone


def test_neither_phrases_nor_links_go_on_in_the_next_text() -> None:
    """In a batch, what the end of a text and the beginning of the next make up together is neither."""
    texts = ["今天下雨编", "辑部放假", "见http:", "//t.cn/a", "见ww", "w.a.cn", "见www.b.cn和http", "://t.cn"]
    contents = ContentFilter(("编辑",), _NORMAL)(Texts.of_strings(texts))
    assert [*contents.texts.strings()] == [*texts[:-2], "见 和http", "://t.cn"]


_POST = "#南京地铁#明天起地铁三号线延长运营一小时，末班车23:30从林场站发出，{}更多资讯可以看官方公众号"
_MORE = "沿途各站请留意站内广播，换乘二号线的乘客请提前出门，"
_DRAW = (
    "双色球2026130期开奖号码是01、05、11、18、26、30和09，本期一等奖中出7注，单注奖金695万元，二等奖118注，单注奖金20万元，"
    "数据来源：中国福彩网"
)


@pytest.mark.parametrize(
    ("text", "left", "bare"),
    [
        (_POST.format(_MORE), _POST.format(_MORE), False),
        (_POST.format(""), "", True),
        (_POST.format(_MORE) + "。祝大家出行愉快", "祝大家出行愉快", False),
    ],
    ids=["long", "short", "followed"],
)
def test_hint_at_the_end_of_a_post_of_one_sentence_takes_no_more_than_60_characters(
    text: str, left: str, *, bare: bool
) -> None:
    """Nothing else would be left of the post; beside another sentence, one of up to 160 characters is a line."""
    content, found = _content(text)
    assert (content, found) == (_NORMAL(left), bare)


def test_copies_of_a_post_of_one_sentence_are_found(make_engine: Callable[..., Deduplicator]) -> None:
    """As it is, and with other words in front; another such post is another article."""
    post = _POST.format(_MORE)
    texts = [post, _DRAW, post, f"转发：{post}", _DRAW]
    with make_engine() as engine:
        decisions = engine.add_batch([Article(str(number), text) for number, text in enumerate(texts)])
    assert [decision.link and decision.link.matched for decision in decisions] == [None, None, "0", "0", "1"]


@pytest.mark.parametrize("form", ["甲{}编辑", "({}编辑)"], ids=["sentence", "brackets"])
@pytest.mark.parametrize(("before", "longest"), [("今天下雨。", 160), ("", 60)], ids=["after another", "alone"])
def test_longer_lines_are_content_whatever_they_say(form: str, before: str, longest: int) -> None:
    """A sentence, or brackets, of more than 160 characters say more than the phrase, or of 60 if nothing else does."""
    remove = ContentFilter(("编辑",), _NORMAL)
    line = form.format("乙" * (longest - len(form.format(""))))
    longer = line.replace("乙", "乙乙", 1)
    contents = remove(Texts.of_strings([before + line, before + longer]))
    assert [*contents.texts.strings()] == [before, before + longer]


@pytest.mark.parametrize("shell", _SHELLS)
def test_shell_is_bare(shell: str) -> None:
    """Nothing is left of a disclaimer, a promotion or a shell around a picture."""
    assert _content(shell)[1]


@pytest.mark.parametrize("text", ["https://t.cn/A6xYz", "😂😂", "的", "。。。", "http://a.example 好"])
def test_text_without_lines_is_not_bare(text: str) -> None:
    """Links, emoji and single words are compared as a whole: they are what the author wrote."""
    assert not _content(text)[1]


@pytest.mark.parametrize("shell", _SHELLS)
def test_shells_attract_nothing(make_engine: Callable[..., Deduplicator], shell: str, bodies: list[str]) -> None:
    """Articles that consist only of a shell are unique, even if it is the same, and attract no copies."""
    engine = make_engine()
    stream = [Article("1", shell), Article("2", shell), Article("3", f"{bodies[0]}\n{shell}"), Article("4", shell)]
    assert [decision.link for decision in engine.add_batch(stream)] == [None] * 4
    assert [decision.link for decision in engine.add_batch([Article("5", f"{shell}")])] == [None]


def test_copies_are_found_whatever_stands_around_them(make_engine: Callable[..., Deduplicator]) -> None:
    """A short piece in a large frame is a copy of the same piece in another frame; two pieces in one frame are not."""
    engine = make_engine()
    one, other = (f"今天上午，第{number}号隧道全线贯通，比计划提前了两个月完成。" for number in ("三", "九"))
    other = other.replace("隧道全线贯通", "粮仓装满新麦").replace("两个月完成", "十天")
    frame, another = "".join(_SHELLS[2:4]), "".join(_SHELLS[:2])
    found = engine.add_batch(
        [Article("1", f"{one}\n{frame}"), Article("2", f"{other}\n{frame}"), Article("3", f"{one}\n{another}")]
    )
    assert [decision.unique for decision in found] == [True, True, False]
    assert found[2].link is not None
    assert (found[2].link.duplicate_of, found[2].link.relation) == ("1", Relation.NEAR)


@pytest.mark.parametrize("text", ["https://t.cn/A6xYz01", "😂😂", "的", "哈哈", "的了在是和就都而及与着"])
def test_posts_without_content_are_compared_as_wholes(make_engine: Callable[..., Deduplicator], text: str) -> None:
    """Posts of only a link, emoji, a word or stop words are copies of the same post, and of no other."""
    engine = make_engine()
    found = engine.add_batch([Article("1", text), Article("2", text), Article("3", f"{text}2")])
    assert [decision.link and decision.link.relation for decision in found] == [None, Relation.EXACT, None]


@pytest.mark.parametrize(
    "post",
    [
        "【明起降温】据中央气象台消息，受强冷空气影响，北方大部将先后降温八度，并伴有大风（来源：央视新闻）",
        "据央视新闻客户端消息，受强冷空气影响，北方大部将先后降温八度，并伴有大风，请注意防寒",
        "据“北岭发布”微信公众号，受强冷空气影响，北岭明天起降温八度，并伴有大风，请注意防寒",
        "今天的晚霞太美了，下班路上好多人停下来拍照[图片][图片]",
    ],
)
def test_posts_that_name_their_source_are_content(make_engine: Callable[..., Deduplicator], post: str) -> None:
    """A post of one sentence with its source in it, or with marks of pictures, says something: it has copies."""
    engine = make_engine()
    found = engine.add_batch([Article("1", post), Article("2", post), Article("3", f"转发微博//@某人：{post}")])
    assert [decision.link and decision.link.matched for decision in found] == [None, "1", "1"]


def test_boilerplate_counts_where_the_settings_say_so(make_engine: Callable[..., Deduplicator]) -> None:
    """Without `text.strip_boilerplate`, two articles consisting of the same disclaimer are copies."""
    engine = make_engine(text={"strip_boilerplate": False})
    found = engine.add_batch([Article("1", _SHELLS[2]), Article("2", _SHELLS[2])])
    assert found[1].link is not None
