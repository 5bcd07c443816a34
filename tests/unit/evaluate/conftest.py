"""Fixtures shared by the evaluation tests: texts of all kinds to apply edits to."""

import pytest

from deploy.demo.samples.corpus import BaseText
from stream_dedup.evaluate.operators import Text

_LONG_CHARS = 20_000


@pytest.fixture(scope="session")
def sample_texts(texts: list[BaseText]) -> dict[str, Text]:
    """Return one text of each kind, with newlines, place names, digits, English words and quotation marks."""
    news = "\n".join(text.body for text in texts if text.title)
    return {
        "news": Text(
            "北京图书馆新馆开放",
            "本报北京3月4日电（记者 林青）北京图书馆新馆昨日向市民开放，首日接待读者12000人次。"
            "“这里比旧馆大一倍！”一位从天津赶来的读者说。\n"
            "新馆藏书380万册，设座位5200个。"
            "馆长表示，今年还将开放夜间阅览室。\n"
            "读者可以用手机App预约座位。"
            "广州、深圳两地的读者也可以通过馆际互借借书。新馆每周一闭馆。节假日照常开放！",
        ),
        "english": Text(
            "Ferry service resumes",
            "The ferry between Sydney and Manly resumed on Monday after a 9-day strike. Mr. Reed, who runs the pier, "
            'said "trade was slow" but improving. Passengers waited for 40 minutes at 7.30 a.m. on the first day. '
            "Are the new timetables final?\n"
            "The company says they are. Tickets cost $4.50. It expects more visitors in May.",
        ),
        "post": Text("", "今天在上海看了一场很棒的展览，排队40分钟也值得！推荐给喜欢摄影的朋友们。"),
        "sentence": Text("快讯", "图书馆昨日向市民开放"),
        "mixed": Text("新品", "iPhone 16 今天在北京发布。The price starts at $799. 网友表示：“太贵了”。你会买吗？"),
        "long": Text("年度报告", (news * (_LONG_CHARS // len(news) + 1))[:_LONG_CHARS]),
    }


@pytest.fixture(scope="session")
def donor() -> Text:
    """Return a Chinese article to borrow sentences from; none of them occurs in another text."""
    return Text(
        "河道清淤",
        "".join(f"第{number}段河道清淤工程已完工，居民{number}户受益。" for number in range(3, 1_500)),
    )


@pytest.fixture(scope="session")
def english_donor() -> Text:
    """Return an English article to borrow sentences from."""
    return Text(
        "Canal", "".join(f"Section {number} of the canal was dredged last month. " for number in range(3, 1_500))
    )
