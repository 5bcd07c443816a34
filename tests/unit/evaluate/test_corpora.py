"""The corpus readers work on small texts in the format of the real ones."""

from pathlib import Path

import orjson

from tests.benchmarks.corpora import HALVES, RawArticle, corpora, english, mixed, people, posts, reports, write

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


def test_the_halves_part_all_that_the_corpora_are_made_of() -> None:
    """No text of one half is part of any corpus of the other, be it long reports or texts in two languages."""
    chinese = [RawArticle(f"c-{number}", "标题", f"第{number}篇。" * 1_000) for number in range(40)]
    foreign = [RawArticle(f"e-{number}", "", f"Story {number} begins here. It goes on.") for number in range(20)]
    reviews = [f"第 {number} 条 comment about the laptop and its keyboard，都说很好用，推荐" for number in range(40)]
    halves = {name: corpora(chinese, foreign, reviews, name) for name in HALVES}
    assert all(
        made[corpus] for made in halves.values() for corpus in ("people", "posts", "english", "reports", "mixed")
    )
    bodies = {name: "\n".join(one.body for some in made.values() for one in some) for name, made in halves.items()}
    marks = [f"第{number}篇。" for number in range(40)] + [f"Story {number} begins" for number in range(20)]
    marks += [f"第 {number} 条" for number in range(40)]
    owners = [[name for name in HALVES if mark in bodies[name]] for mark in marks]
    assert all(len(owner) <= 1 for owner in owners)
    assert sum(map(bool, owners)) > 80, "but for remainders, all are in one"


def test_times_of_a_half_ascend(tmp_path: Path) -> None:
    """They are spread over a month in the order of the articles."""
    write("x", [RawArticle(f"x-{number}", "", "正文") for number in range(40)], tmp_path / "x.jsonl")
    lines = [orjson.loads(line) for line in (tmp_path / "x.jsonl").read_bytes().splitlines()]
    assert [line["id"] for line in lines] == [f"x-{number}" for number in range(40)]
    assert len({line["published_at"] for line in lines}) == 40
    assert lines == sorted(lines, key=lambda line: line["published_at"])
