"""Verdicts: what a changed copy is called, what is not a copy, and which of several candidates wins."""

from collections.abc import Callable
from itertools import permutations

import pytest
from opencc import OpenCC

from stream_dedup.article import Article, Decision, Relation, Source
from stream_dedup.engine.dedup import Deduplicator

_SENTENCES = [
    "石桥镇的夜市昨晚重新开张，三十多个摊位沿河一字排开。",
    "镇里把摊位费改成按出摊天数收取，下雨不出摊就不用交钱。",
    "摊主郑巧云说，她的卤味一晚能卖两百多份，老主顾都回来了。",
    "城管队员在路口设了垃圾分类点，每隔一个小时清运一次。",
    "附近居民担心噪声，管理方承诺十点以后一律关掉音响。",
    "Local vendors said the new rules helped them a lot.",
    "一位大学生带着相机来拍照，说要把这里写进毕业设计。",
    "河对岸的老茶馆也跟着延长了营业时间，茶客坐到很晚才走。",
    "据介绍，夜市将持续到明年春天，随后视情况调整规模。",
    "记者离开时，灯串还亮着，锅里的热气和笑声混在一起。",
]
_TEXT = "".join(_SENTENCES)
_OTHER = (
    "天文台公布了新拍到的彗星照片，彗尾在长时间曝光下清晰可见。爱好者可以在日出之前用双筒望远镜向东方寻找它，"
    "预计下周亮度达到高峰，随后逐渐远离太阳。专家提醒观测时不要直视太阳，并注意保暖和防滑，山路夜间行车更要小心。"
)
_BULLETIN = (
    "双色球第{0}期开奖公告：本期红球号码为{1}，蓝球号码为{2}，全国共售出彩票{3}元，一等奖{4}注，单注奖金{5}元，"
    "二等奖{6}注，奖池累计金额{7}元。兑奖期限自开奖之日起六十天，逾期作弃奖处理，请彩民妥善保管彩票并及时兑奖。"
    "各销售网点照常营业，未满十八周岁的未成年人不得购买彩票或者兑奖，购彩应当量力而行，理性看待中奖与否。"
    "本公告由彩票中心发布，如有疑问可以拨打服务热线咨询，也可以前往就近的服务大厅由工作人员当面解答。"
)
_FIRST_NUMBERS = ("2026117", "03 08 15 22 27 31", "09", "356,782,410", "7", "8,113,402", "142", "2,431,882,190")
_LATER_NUMBERS = ("2026118", "01 12 16 19 24 30", "14", "341,207,956", "4", "9,870,011", "98", "2,517,043,377")
_EXACT_SKETCH = {"size": 1024}  # holds every n-gram of these texts, so that nothing is an estimate

Maker = Callable[..., Deduplicator]


def _grams(text: str) -> set[str]:
    plain = "".join(filter(str.isalnum, text.lower()))
    return {plain[i : i + 5] for i in range(len(plain) - 4)}


def _jaccard(one: str, other: str) -> float:
    a, b = _grams(one), _grams(other)
    return len(a & b) / len(a | b)


def _second(engine: Deduplicator, first: str, second: str) -> Decision:
    """Judge two texts in one batch and return the decision on the second."""
    return engine.add_batch([Article("first", first), Article("second", second)])[1]


def _relation(decision: Decision) -> Relation | None:
    return decision.link.relation if decision.link else None


def _fullwidth(text: str) -> str:
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)


@pytest.mark.parametrize(
    "changed",
    [
        _TEXT,
        _TEXT.upper(),
        _fullwidth(_TEXT),
        OpenCC("s2t").convert(_TEXT),
        _TEXT.replace("，", ",").replace("。", " . "),
        "".join(filter(str.isalnum, _TEXT)),
        "\u200b".join(_TEXT),
        "<p>" + "</p>\n<p>".join(_SENTENCES) + "</p>",
        _TEXT.replace("。", "。\r\n\u3000\u3000"),
        _TEXT.replace("。", "。👍"),
    ],
    ids=[
        *("verbatim", "capitals", "full-width", "traditional", "punctuation", "no punctuation", "zero-width"),
        *("HTML", "blanks", "emoji"),
    ],
)
def test_same_text_in_another_dress_is_exact(make_engine: Maker, changed: str) -> None:
    """Case, width, script, punctuation, whitespace, invisible characters, tags and emoji make no difference."""
    decision = _second(make_engine(), _TEXT, changed)
    assert not decision.unique
    assert decision.link is not None
    assert (decision.link.relation, decision.link.source) == (Relation.EXACT, Source.CONTENT)
    assert (decision.link.duplicate_of, decision.link.matched) == ("first", "first")
    assert (decision.link.jaccard, decision.link.containment) == (1, 1)


def test_text_with_a_changed_sentence_is_near(make_engine: Maker) -> None:
    """With one of ten sentences rewritten, a text is a near copy."""
    changed = _TEXT.replace(_SENTENCES[4], "管理方说，晚上十点一到，所有的喇叭都得关上。")
    assert 0.5 < _jaccard(_TEXT, changed) < 0.95
    assert _relation(_second(make_engine(), _TEXT, changed)) is Relation.NEAR


def test_text_with_swapped_paragraphs_is_near(make_engine: Maker) -> None:
    """The same sentences in another order are a near copy."""
    swapped = "".join(_SENTENCES[5:] + _SENTENCES[:5])
    assert _relation(_second(make_engine(), _TEXT, swapped)) is Relation.NEAR


def test_cut_copy_is_contained_and_a_round_up_contains(make_engine: Maker) -> None:
    """The first half of an article is contained in it; the article contains its first half."""
    half = "".join(_SENTENCES[:5])
    assert _relation(_second(make_engine(), _TEXT, half)) is Relation.CONTAINED
    assert _relation(_second(make_engine(), half, _TEXT)) is Relation.CONTAINS


def test_round_up_of_two_articles_contains_the_larger_part(make_engine: Maker) -> None:
    """A round-up is linked to an article that it contains."""
    decision = _second(make_engine(), _TEXT, _OTHER + _TEXT)
    assert _relation(decision) is Relation.CONTAINS
    assert decision.link is not None
    assert decision.link.matched == "first"


def test_other_story_is_unique(make_engine: Maker) -> None:
    """A text that shares no sentence has no link."""
    decision = _second(make_engine(), _TEXT, _OTHER)
    assert (decision.unique, decision.link) == (True, None)


def test_text_that_shares_a_third_is_unique(make_engine: Maker) -> None:
    """Three common sentences of ten in each text are too few for a copy."""
    other = "".join(_SENTENCES[:3]) + _OTHER * 2
    assert _jaccard(_TEXT, other) < 0.4
    assert _second(make_engine(), _TEXT, other).unique


def test_bulletins_that_differ_in_numbers_are_not_duplicates(make_engine: Maker) -> None:
    """Two lottery draws share more than half of their 5-grams but are two articles."""
    first, later = _BULLETIN.format(*_FIRST_NUMBERS), _BULLETIN.format(*_LATER_NUMBERS)
    assert _jaccard(first, later) > 0.5
    decision = _second(make_engine(sketch=_EXACT_SKETCH), first, later)
    assert (decision.unique, decision.link) == (True, None)


def test_bulletin_with_its_numbers_kept_but_a_sentence_cut_is_a_duplicate(make_engine: Maker) -> None:
    """A repost of the bulletin without its last clauses is a copy of it."""
    whole = _BULLETIN.format(*_FIRST_NUMBERS)
    cut = whole[: whole.index("兑奖期限")]
    decision = _second(make_engine(), whole, cut)
    assert not decision.unique
    assert _relation(decision) in {Relation.CONTAINED, Relation.NEAR}


def test_bulletins_are_duplicates_where_the_settings_do_not_ask_for_numbers(make_engine: Maker) -> None:
    """With numbers_overlap = 0, numbers are ignored."""
    engine = make_engine(verify={"numbers_overlap": 0}, sketch=_EXACT_SKETCH)
    decision = _second(engine, _BULLETIN.format(*_FIRST_NUMBERS), _BULLETIN.format(*_LATER_NUMBERS))
    assert _relation(decision) is Relation.NEAR


def test_cut_copy_that_keeps_all_places_keeps_enough_of_them(make_engine: Maker) -> None:
    """With numbers_overlap = 1 no number and no place may be lost, and of those of a verbatim part none is."""
    half = "北京市和上海市的客商早早赶到。" + "".join(_SENTENCES[:5])
    engine = make_engine(verify={"numbers_overlap": 1})
    assert _relation(_second(engine, half + "".join(_SENTENCES[5:]), half)) is Relation.CONTAINED


def test_edited_text_is_a_copy_whatever_its_numbers(make_engine: Maker) -> None:
    """If far more differs than the numbers explain, the text was edited and is not a bulletin of the same template."""
    numbered = _TEXT + "摊位三十二个，客流4100人次，营业额27万元，垃圾9车。"
    edited = list(numbered.replace("4100", "8200").replace("27", "31").replace("9车", "6车"))
    edited[5::19] = "乙" * len(edited[5::19])
    assert 0.5 < _jaccard(numbered, "".join(edited)) < 0.7
    engine = make_engine(sketch=_EXACT_SKETCH)
    assert _relation(_second(engine, numbered, "".join(edited))) is Relation.NEAR
    strict = make_engine(sketch=_EXACT_SKETCH, verify={"numbers_grams": 1000})
    assert _second(strict, numbered, "".join(edited)).unique


def test_misprinted_numbers_in_a_long_copy_are_still_a_copy(make_engine: Maker) -> None:
    """If texts agree by 95% or more, differing numbers are misprints."""
    long = _TEXT + _OTHER + "东风村今年种下了成片的油菜，春天一到满坡金黄，游人比往年更多，村口的小店早早备足了货。"
    first, second = long + "得票为1比2比3", long + "得票为4比5比6"
    assert _jaccard(first, second) >= 0.95
    assert _relation(_second(make_engine(sketch=_EXACT_SKETCH), first, second)) is Relation.NEAR


def test_short_texts_are_compared_as_wholes_only(make_engine: Maker) -> None:
    """Texts under 10 n-grams are copies only if they are the same, not if they are similar."""
    engine = make_engine()
    decisions = engine.add_batch(
        [Article("a", "今天天气真不错啊！"), Article("b", "今天天气真不错啊"), Article("c", "今天天气真不错呀")]
    )
    assert [_relation(decision) for decision in decisions] == [None, Relation.EXACT, None]


def test_texts_without_a_word_are_compared_by_their_symbols(make_engine: Maker) -> None:
    """The same emoji are an exact copy, other emoji are not."""
    articles = [Article("a", "👍👍"), Article("b", "👍 👍"), Article("c", "🎉"), Article("d", "……")]
    decisions = make_engine().add_batch(articles)
    assert [_relation(decision) for decision in decisions] == [None, Relation.EXACT, None, None]


@pytest.mark.parametrize(("first", "second"), [("👍👍", _TEXT), (_TEXT, "👍👍"), ("👍", "🎉")])
@pytest.mark.parametrize("batched", [True, False])
def test_revision_from_or_to_a_text_without_words_is_judged(
    make_engine: Maker,
    first: str,
    second: str,
    batched: bool,  # noqa: FBT001  # parametrised
) -> None:
    """If an id's text changes between emoji only and an article, in either direction, it is a revision."""
    engine, articles = make_engine(), [Article("a", first), Article("a", second)]
    decisions = engine.add_batch(articles) if batched else [engine.add(article) for article in articles]
    assert _relation(decisions[1]) is Relation.REVISION


@pytest.mark.parametrize("batched", [True, False])
def test_among_equals_the_earliest_wins(
    make_engine: Maker,
    batched: bool,  # noqa: FBT001  # parametrised
) -> None:
    """Of two stored articles equally similar to a third, the earlier one is matched."""
    base = "".join(_SENTENCES[:4])
    texts = {"a": base + "梅花开得正好的时候。", "b": base + "竹林深处听见了风声。"}
    assert _jaccard(base, texts["a"]) == _jaccard(base, texts["b"])
    for order in permutations(texts):
        engine = make_engine(verify={"duplicates": ["exact"]})
        articles = [*(Article(name, texts[name]) for name in order), Article("c", base)]
        decisions = engine.add_batch(articles) if batched else [engine.add(article) for article in articles]
        assert decisions[2].link is not None
        assert decisions[2].link.matched == order[0]


def test_among_several_candidates_the_more_similar_wins(make_engine: Maker) -> None:
    """In any order of arrival, the article with the highest Jaccard is matched; an exact copy goes before all."""
    texts = {
        "far": "".join(_SENTENCES[:7]) + _OTHER[:60],
        "close": "".join(_SENTENCES[:9]) + "最后，大家都散了。",
        "same": _TEXT.upper(),
    }
    for names in (("far", "close"), ("far", "close", "same")):
        for order in permutations(names):
            engine = make_engine(verify={"duplicates": ["redelivery"]})
            decisions = engine.add_batch([*(Article(name, texts[name]) for name in order), Article("query", _TEXT)])
            assert decisions[-1].link is not None
            assert decisions[-1].link.matched == names[-1]


def test_exact_copy_goes_before_an_earlier_text_of_the_same_passages(make_engine: Maker) -> None:
    """A text printed twice and one printed three times have the same n-grams, and are not the same text."""
    twice, thrice = _TEXT * 2, _TEXT * 3
    assert _jaccard(twice, thrice) == 1
    engine = make_engine(verify={"duplicates": ["redelivery"]}, sketch=_EXACT_SKETCH)
    decisions = engine.add_batch([Article("twice", twice), Article("thrice", thrice), Article("query", thrice)])
    assert [_relation(decision) for decision in decisions] == [None, Relation.NEAR, Relation.EXACT]
    assert decisions[2].link is not None
    assert decisions[2].link.matched == "thrice"


def test_relation_that_counts_as_a_duplicate_wins_over_a_more_similar_one(make_engine: Maker) -> None:
    """If only `contained` counts, a shortened copy is a duplicate of the whole article, not related to a near one."""
    half = "".join(_SENTENCES[:5])
    near = half + "就这样。"
    engine = make_engine(verify={"duplicates": ["contained"]})
    decisions = engine.add_batch([Article("near", near), Article("whole", _TEXT), Article("query", half)])
    assert _jaccard(half, near) > _jaccard(half, _TEXT)
    assert decisions[-1].link is not None
    assert (decisions[-1].link.matched, decisions[-1].link.relation) == ("whole", Relation.CONTAINED)


def test_relations_that_do_not_count_leave_an_article_unique(make_engine: Maker) -> None:
    """If its relation is not in `duplicates`, an article is unique, carries its link and joins no cluster."""
    engine = make_engine(verify={"duplicates": ["near"]})
    judged = engine.process([Article("first", _TEXT), Article("second", _TEXT.upper())])
    decision = judged.decisions[1]
    assert (decision.unique, _relation(decision), decision.indexed) == (True, Relation.EXACT, True)
    assert judged.clusters == {}


def test_copies_of_copies_have_the_first_article_as_canonical(make_engine: Maker) -> None:
    """Later copies match a drifted copy, but the cluster remains that of the first article."""
    drifted = "".join(_SENTENCES[:7]) + _OTHER[:62]
    assert 0.5 < _jaccard(_TEXT, drifted) < 0.6
    later = drifted.replace(_SENTENCES[0], "晚上，河边挤满了人。")
    articles = [Article("a", _TEXT), Article("b", drifted), Article("c", later)]
    decisions = make_engine(sketch=_EXACT_SKETCH).add_batch(articles)
    assert [decision.link and decision.link.duplicate_of for decision in decisions] == [None, "a", "a"]
    assert decisions[1].indexed
    assert decisions[2].link is not None
    assert decisions[2].link.matched == "b"


def test_copy_that_is_like_the_original_on_the_whole_has_not_drifted(make_engine: Maker) -> None:
    """Though more than a tenth of it is new: copies of it will find the original."""
    changed = _TEXT.replace(_SENTENCES[4], "管理方说，晚上十点一到，所有的喇叭都得关上。").replace(
        _SENTENCES[7], _OTHER[:30]
    )
    assert _jaccard(_TEXT, changed) > 0.6
    assert len(_grams(_TEXT) & _grams(changed)) < 0.9 * min(len(_grams(_TEXT)), len(_grams(changed)))
    decision = _second(make_engine(sketch=_EXACT_SKETCH), _TEXT, changed)
    assert (_relation(decision), decision.indexed) == (Relation.NEAR, False)


@pytest.mark.parametrize("again", [False, True], ids=["the drifted copy", "a later copy that is indexed in its place"])
def test_copy_of_a_drifted_copy_has_to_be_a_close_one(make_engine: Maker, *, again: bool) -> None:
    """Along a chain of edits less and less is shared with the first article; a shortened copy adds nothing to it."""
    drifted, window = "".join(_SENTENCES[:7]) + _OTHER[:62], {"days": 8}
    distant = _OTHER[:62] + "".join(_SENTENCES[4:7]) + _BULLETIN[60:200]
    short = _SENTENCES[6] + _OTHER[:62]
    assert 0.33 < _jaccard(drifted, distant) < 0.4
    assert _jaccard(_TEXT, distant) < 0.33
    assert _jaccard(drifted, short) < 0.4
    assert _grams(short) - _grams(drifted) <= set()
    first = [Article("a", _TEXT, published_ms=0)]
    chain = [Article("b", drifted, published_ms=0), *[Article("c", drifted, published_ms=2 * 86_400_000)] * again]
    others = [
        Article("short", short, published_ms=2 * 86_400_000),
        Article("distant", distant, published_ms=2 * 86_400_000),
    ]
    decisions = make_engine(sketch=_EXACT_SKETCH, window=window).add_batch([*first, *chain, *others])
    assert [decision.indexed for decision in decisions[: 2 + again]] == [True] * (2 + again)
    assert [_relation(decision) for decision in decisions[-2:]] == [Relation.CONTAINED, None]
    decisions = make_engine(sketch=_EXACT_SKETCH, window=window).add_batch([*chain, *others])
    assert [_relation(decision) for decision in decisions[-2:]] == [Relation.CONTAINED, Relation.NEAR]


def test_same_id_again_is_a_redelivery_or_a_revision(make_engine: Maker) -> None:
    """An id with a text it already had is a redelivery; with another text it is a revision, which is unique."""
    engine = make_engine()
    texts = [_TEXT, _TEXT, _OTHER, _OTHER, _TEXT]
    relations = [_relation(engine.add(Article("a", text))) for text in texts]
    assert relations == [None, Relation.REDELIVERY, Relation.REVISION, Relation.REDELIVERY, Relation.REDELIVERY]
    assert engine.add(Article("a", _TEXT.replace("。", "，并且") + _OTHER)).unique


@pytest.mark.parametrize("batched", [True, False])
def test_new_text_of_an_article_is_compared_with_those_of_others_alone(
    make_engine: Maker,
    batched: bool,  # noqa: FBT001  # parametrised
) -> None:
    """A round-up that was published under a known id is a copy of an article in it, not of its own earlier text."""
    part, rest = "".join(_SENTENCES[:6]) + _OTHER[:60], "".join(_SENTENCES[6:])
    assert _jaccard(part, _TEXT) > _jaccard(rest, _TEXT)
    engine = make_engine(sketch=_EXACT_SKETCH)
    articles = [Article("own", part), Article("other", rest), Article("own", _TEXT)]
    decisions = engine.add_batch(articles) if batched else [engine.add(article) for article in articles]
    assert [decision.unique for decision in decisions] == [True, True, False]
    assert decisions[2].link is not None
    assert (decisions[2].link.matched, decisions[2].link.relation) == ("other", Relation.CONTAINS)


def test_either_index_alone_finds_copies(make_engine: Maker) -> None:
    """With landmarks or SimHash tables disabled, the other index finds a near copy and is named as the source."""
    changed = _TEXT.replace(_SENTENCES[9], "")
    found = {
        source: _second(make_engine(**groups), _TEXT, changed)
        for source, groups in (
            (Source.LANDMARK, {"simhash": {"enabled": False}}),
            (
                Source.SIMHASH,
                {
                    "landmarks": {"enabled": False},
                    "simhash": {"tables": 8, "prefix_bits": 24, "max_distance": 12, "probes": 128},
                },
            ),
        )
    }
    for source, decision in found.items():
        assert decision.link is not None
        assert decision.link.source is source
