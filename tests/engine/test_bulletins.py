"""Bulletins of one template, written for these tests: the same wording, told apart by what fills the holes.

Knows templates and their holes; knows nothing of how particulars are found or compared.
"""

from collections.abc import Iterator
from random import Random

import pytest

from stream_dedup import Article, Deduplicator, EngineSettings

# fmt: off
_CITIES = [
    "北京", "上海", "广州", "深圳", "成都", "杭州", "武汉", "西安", "南京", "重庆",
    "天津", "苏州", "长沙", "郑州", "青岛", "沈阳", "宁波", "昆明", "大连", "福州",
]
_PROVINCES = [
    "河南", "湖北", "湖南", "四川", "山东", "江苏", "浙江", "广东", "福建", "安徽",
    "江西", "云南", "贵州", "陕西", "甘肃", "辽宁",
]
# fmt: on
_DIGITS = "零一二三四五六七八九"
_COPIES = 8
# {number}: digits; {ordinal}: the same in Chinese numerals; {city}, {province}: names. No value is used twice.
_TEMPLATES = {
    "warning": "{city}市气象台{number}月{number}日{number}时发布暴雨预警信号：预计未来{number}小时内，{city}大部分地"
    "区将出现明显降水过程，局地伴有短时强降水、雷电等强对流天气，请有关单位和公众注意做好防范工作，减少户"
    "外活动，注意交通安全。",
    "close": "{number}日收盘，沪指报{number}点，深证成指报{number}点，创业板指报{number}点。两市成交额{number}亿元"
    "，北向资金净流入{number}亿元，较上一交易日有所增加。盘面上，题材板块轮动较快，权重股表现平稳，市场观"
    "望情绪仍然较浓。",
    "lottery": "双色球第{number}期开奖结果：红球 {number}、{number}、{number}、{number}、{number}、{number}，蓝球 "
    "{number}。本期一等奖中出{number}注，单注奖金{number}万元。请彩民以中国福彩网公布的结果为准，理性购彩"
    "，量力而行。",
    "match": "联赛常规赛第{ordinal}轮继续进行，{province}队主场{number}比{number}战胜{province}队。四节比分分别为"
    "{number}-{number}、{number}-{number}、{number}-{number}、{number}-{number}。赛后双方主教练出席了新闻"
    "发布会，对球员的拼劲都表示满意。",
    "readout": "全国人大常委会第{ordinal}次会议{number}日上午在北京人民大会堂举行第{ordinal}次全体会议。常委会组成人"
    "员{number}人出席会议，出席人数符合法定人数。会议听取了有关法律草案修改情况的汇报和专项工作报告，审议"
    "了有关任免案。",
    "congress": "{province}省第{ordinal}届人民代表大会第{ordinal}次会议在{city}闭幕。会议表决通过了关于政府工作报告的"
    "决议，表决通过了关于国民经济和社会发展计划执行情况的决议，表决通过了关于预算执行情况的决议。大会在雄"
    "壮的国歌声中胜利闭幕。",
    "routes": "据铁路部门消息，受强降雨影响，为确保旅客列车运行安全，对途经{city}、{city}至{city}方向的部分列车采取"
    "限速、停运等措施。请广大旅客密切关注车站公告和网站信息，合理安排出行，需要退票的旅客可到车站窗口办理"
    "，不收取手续费。",
}


def _chinese(number: int) -> str:
    tens, units = divmod(number, 10)
    return (_DIGITS[tens] if tens > 1 else "") + ("十" if tens else "") + (_DIGITS[units] if units or not tens else "")


def _filled(template: str, rng: Random) -> Iterator[str]:
    """Yield bulletins, no two of which share a number, an ordinal or a place."""
    count = _COPIES * template.count("{number}") + _COPIES * template.count("{ordinal}")
    numbers = iter(rng.sample(range(2, 100 if count < 90 else 400), count))
    cities, provinces = (iter(rng.sample(names, len(names))) for names in (_CITIES, _PROVINCES))
    for _ in range(_COPIES):
        text = template
        if text.count("{city}") == 2:  # the same city twice
            text = text.replace("{city}", next(cities))
        for hole, values in (("{city}", cities), ("{province}", provinces)):
            while hole in text:
                text = text.replace(hole, next(values), 1)
        while "{ordinal}" in text:
            text = text.replace("{ordinal}", _chinese(next(numbers) % 100 or 1), 1)
        while "{number}" in text:
            text = text.replace("{number}", str(next(numbers)), 1)
        yield text


@pytest.mark.parametrize("name", _TEMPLATES)
def test_bulletins_of_a_template_are_unique_and_their_reposts_are_not(name: str) -> None:
    """Bulletins with other numbers, dates, ordinals or places are unique; each repost is linked to its own bulletin."""
    copies = 6 if name == "routes" else _COPIES  # three cities each
    bulletins = [text for _, text in zip(range(copies), _filled(_TEMPLATES[name], Random(7)), strict=False)]
    with Deduplicator(settings=EngineSettings()) as engine:
        first = engine.add_batch([Article(str(n), text) for n, text in enumerate(bulletins)])
        assert [decision.link for decision in first] == [None] * copies
        again = [Article(f"r{n}", f"本报讯（记者李明）{text}（责任编辑：王芳）") for n, text in enumerate(bulletins)]
        found = [decision.link and decision.link.matched for decision in engine.add_batch(again)]
    assert found == [str(n) for n in range(copies)]


# Places that jieba's dictionary lacks, or knows only with 市; longer names by their first four characters.
_NAMES = [
    *(("合肥", "石家庄"), ("大连", "海口"), ("银川", "拉萨"), ("烟台", "嘉兴"), ("高雄", "基隆"), ("观塘", "旺角")),
    *(
        ("伊拉克", "乌克兰"),
        ("沙特", "卡塔尔"),
        ("哈萨克斯坦", "乌兹别克斯坦"),
        ("印度", "印度尼西亚"),
        ("首尔", "开罗"),
    ),
]
_HEAT = (
    "{place}气象部门5日发布高温预警信号：预计未来三天内，{place}大部分地区最高气温将升至35度以上，午后紫外线较强，请有关单位和"
    "公众注意做好防范工作，减少户外活动，多喝水，老人和儿童尽量避免在高温时段外出，露天作业人员注意轮换休息。"
)


@pytest.mark.parametrize("names", _NAMES, ids="-".join)
def test_names_that_are_no_words_of_the_dictionary_are_places(names: tuple[str, str]) -> None:
    """The bulletins of two cities or countries differ in nothing else; each repost is linked to its own."""
    texts = [_HEAT.format(place=name) for name in names]
    with Deduplicator(settings=EngineSettings()) as engine:
        decisions = engine.add_batch([Article(str(n), text) for n, text in enumerate([*texts, *texts])])
    assert [decision.link and decision.link.matched for decision in decisions] == [None, None, "0", "1"]


def test_words_for_countries_in_general_are_no_places() -> None:
    """Two state visits share them, as all visits do: of 北京, 法国 and 两国 and of 北京, 埃及 and 两国, half differ."""
    visit = (
        "国家主席5日在北京同来访的{country}总统举行会谈。双方就两国关系和共同关心的国际问题深入交换意见，一致同意以建交周年"
        "为契机，推动两国关系迈上新台阶。会谈前，国家主席为客人举行欢迎仪式，两国外长和有关部门负责人参加。"
    )
    with Deduplicator(settings=EngineSettings()) as engine:
        decisions = engine.add_batch([Article(name, visit.format(country=name)) for name in ("法国", "埃及", "伊拉克")])
    assert [decision.link for decision in decisions] == [None] * 3


def test_a_place_alone_makes_another_bulletin() -> None:
    """Two cities may be warned at the same hour of the same rain."""
    (text, *_) = _filled(_TEMPLATES["warning"], Random(7))
    (city,) = [name for name in _CITIES if name in text]
    with Deduplicator(settings=EngineSettings()) as engine:
        decisions = engine.add_batch([Article(name, text.replace(city, name)) for name in _CITIES])
    assert [decision.article.id for decision in decisions if decision.unique] == _CITIES


def test_bulletins_that_share_one_of_two_places_are_others() -> None:
    """All visitors are received in Beijing."""
    text = "外交部长在北京同来访的{}外长举行会谈，就双边关系以及共同关心的问题深入交换意见，并会见记者。"
    visitors = ["法国", "德国", "巴西", "埃及", "泰国", "波兰"]
    with Deduplicator(settings=EngineSettings()) as engine:
        decisions = engine.add_batch([Article(name, text.format(name)) for name in visitors])
    assert [decision.article.id for decision in decisions if decision.unique] == visitors


def test_a_place_that_is_left_out_makes_no_other_bulletin() -> None:
    """A copy need not name all places of its original."""
    text = next(_filled(_TEMPLATES["routes"], Random(7)))
    kept = text.replace("途经", "途经呼和浩特、")
    with Deduplicator(settings=EngineSettings()) as engine:
        first, second = engine.add_batch([Article("1", kept), Article("2", text)])
    assert first.unique
    assert second.link is not None
