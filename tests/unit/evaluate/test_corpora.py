"""The corpus readers work on small texts in the format of the real ones."""

from pathlib import Path

import orjson

from tests.benchmarks.corpora import RawArticle, english, half, mixed, people, posts, reports, write

_BODY = "本报/r 讯/n 图书馆/n 开放/v 。/w " * 20
_TAGGED = f"""\
新馆/n 开放/v
读者/n 称赞/v
{_BODY}
（/w 附/v 图片/n １/m 张/q ）/w
{_BODY}
[中央/n 电视台/n]nt 播出/v 新/a 节目/n
{_BODY}
"""


def test_articles_begin_where_headlines_follow_a_paragraph() -> None:
    """Tags and brackets are removed, consecutive headlines form one title, a bracketed caption starts no article."""
    paragraph = "本报讯图书馆开放。" * 20
    first, second = people(_TAGGED)
    assert first == RawArticle("people-00000", "新馆开放读者称赞", f"{paragraph}\n（附图片１张）\n{paragraph}")
    assert second == RawArticle("people-00005", "中央电视台播出新节目", paragraph)


def test_posts_are_as_long_as_posts() -> None:
    """Posts of 30 to 140 characters are kept; their ids contain the line number."""
    assert [post.id for post in posts(["好" * 29, "好" * 30, "好" * 140, "好" * 141])] == ["post-00001", "post-00002"]


def test_long_reports_are_long() -> None:
    """Consecutive articles are joined until they reach 20,000 characters; a shorter remainder is dropped."""
    made = reports([RawArticle(str(number), "标题", "文" * 3_000) for number in range(15)])
    assert len(made) == 2
    assert all(20_000 <= len(report.body) < 23_010 for report in made)


def test_mixed_texts_have_both_languages() -> None:
    """Reviews with enough English are kept, and Chinese paragraphs alternate with English sentences."""
    chinese = [RawArticle("c", "标题", "第一段。\n第二段。")]
    foreign = english(["The first sentence is here. The second sentence follows. " + "More words come. " * 10])
    review = "这台 laptop computer 的 keyboard 很好用，screen 也不错，推荐购买它"
    made = mixed(chinese, foreign, [review, "全是中文的评论，没有一个字母在里面，所以它不算在两种语言里"])
    assert [article.id for article in made] == ["mixed-0000", "quoting-c"]
    assert made[1].body.split("\n")[:3] == ["第一段。", "The first sentence is here.", "第二段。"]


def test_the_halves_part_the_corpus(tmp_path: Path) -> None:
    """Each article is in exactly one file, chosen by its id alone, and times ascend."""
    articles = [RawArticle(f"x-{number}", "", "正文") for number in range(40)]
    write("x", articles, tmp_path)
    lines = {
        name: [orjson.loads(line) for line in (tmp_path / f"x.{name}.jsonl").read_bytes().splitlines()]
        for name in ("tune", "report")
    }
    assert all(half(line["id"]) == name for name, each in lines.items() for line in each)
    assert sum(map(len, lines.values())) == len({line["id"] for each in lines.values() for line in each}) == 40
    assert all(each == sorted(each, key=lambda line: line["published_at"]) for each in lines.values())
