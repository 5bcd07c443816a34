"""The page, in a real browser on a real service.

It shows what was decided, in the user's language and on any screen, and runs no outside code.
"""

import random
import re
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from playwright.sync_api import Browser, Route, ViewportSize, expect

from deploy.ports import free_port
from stream_dedup.api.problems import Code
from stream_dedup.article import VerdictReason
from stream_dedup.observe.health import Awaited
from tests.stream.arguments import REPOSITORY, clean_environment
from tests.stream.chromium import Watched, chromium, watched
from tests.stream.messages import article, produce
from tests.stream.records import collect
from tests.stream.service import Service
from tests.stream.topics import Topics, fresh_topics
from tests.stream.waiting import wait_until

pytestmark = pytest.mark.usefixtures("compiled")
_TOKEN = "a-token-of-some-length"  # noqa: S105  # used only in this test
_STORY = (
    "石桥镇的夜市昨晚重新开张，三十多个摊位沿河一字排开，附近的居民和游客都来捧场。镇里今年把摊位费由按月收改成按天收，"
    "雨天不来不收钱。卖藕片的郑巧云说，算下来比去年同期少交了四千多元，她用这笔钱换了一台静音排烟机。"
)
_COPY = _STORY.replace("静音排烟机", "二手冰柜")
_OTHER = (
    "气象台预计，明天白天晴间多云，最高气温二十六度，夜里转阴，北风三到四级，出门请带一件外套，傍晚收好晾晒的衣物。"
)
# The articles have dates that may lie in the clock's future, or far in its past.
_ANY_TIME = ("input.max_future_seconds=1000000000", "window.days=36500")
_SCRIPT = "<script>window.hurt = 1</script>"
_PICTURE = '<img src="x" onerror="window.hurt = 1">'
_HOSTILE = (
    f"有人在标题里写代码，{_PICTURE}，想让看的人上当。编辑部提醒，凡是来历不明的文字都只当文字显示，"
    "绝不执行其中任何一句，读者看到它时不必惊慌。"
)
_HOSTILE_ID = f"{_SCRIPT}&amp;'\"#%/?"
_REVERSED = "\u202e"  # from here on right to left
_TURNING = (
    f"修表的老林在巷口坐了二十年，{_REVERSED}他的工具箱里有一把\x1b[31m祖父留下的镊子\x07，\n他说表走得准不准要听，"
    "\u2067不要看，街坊的钟慢了都抱来给他，\x00他一听就知道是哪个齿轮缺了油。"
)
# Bidirectional control characters, by Unicode's bidirectional algorithm.
_TURNS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
_MARKS = {"LEFT-TO-RIGHT MARK", "RIGHT-TO-LEFT MARK", "ARABIC LETTER MARK"}


@dataclass(frozen=True, slots=True)
class _Site:
    service: Service
    topics: Topics
    bootstrap: str

    @property
    def url(self) -> str:
        """Address of its API."""
        return str(self.service.events("answering")[-1]["api"])


@pytest.fixture(scope="module")
def site(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Site]:
    """A service with its API that has judged a story with two near copies, another story, and hostile text.

    The hostile text comes twice, the second time with a script appended, which is markup: an exact copy.
    """
    topics = fresh_topics(bootstrap)
    # The API queries the service for its figures at the port in the settings.
    flags = ("api.enabled=true", "api.port=0", "api.refresh_ms=100", f"http.port={free_port()}", *_ANY_TIME)
    hostile = {"title": _SCRIPT, "source": _PICTURE, "published_at": "2026-10-15T11:00:00Z"}
    with Service(tmp_path_factory.mktemp("page"), bootstrap, topics, *flags) as service:
        service.wait_ready()
        produce(
            bootstrap,
            topics.input,
            [
                article("story", _STORY, title="夜市重新开张", source="石桥晚报", published_at="2026-10-15T08:00:00Z"),
                article("copy", _COPY, source="江畔快讯", published_at="2026-10-15T09:30:00Z"),
                article("part", _STORY[:80], source="北岭在线", published_at="2026-10-15T08:40:00Z"),
                article("weather", _OTHER, source="气象台", published_at="2026-10-15T10:00:00Z"),
                article("plain", _HOSTILE, **hostile),
                article(_HOSTILE_ID, _HOSTILE + _SCRIPT, **hostile),
            ],
        )
        collect(bootstrap, topics, 6, service)
        wait_until(lambda: bool(service.events("answering")), "the API", 180)
        yield _Site(service, topics, bootstrap)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The machine's browser."""
    with chromium(scrollbars=True) as one:
        yield one


@pytest.fixture
def page(site: _Site, browser: Browser) -> Iterator[Watched]:
    """The page, open."""
    with watched(browser, site.url) as one:
        yield one.open()


def test_rate_and_shares_are_those_of_the_stream(page: Watched, site: _Site) -> None:
    """Shares are shown by relation; as articles arrive, the rate, its chart and the total follow."""
    expect(page.page.locator("#judged")).to_have_text("6")
    assert page.text("#state") == "The service is running"
    shares = dict(zip(page.texts("#shares th"), page.texts("#shares td.number"), strict=True))
    assert shares == {"new": "50%", "near": "33.3%", "exact": "16.7%"}
    expect(page.page.locator("#waiting")).to_have_text("0")  # updated every few seconds
    produce(
        site.bootstrap,
        site.topics.input,
        [article(f"late-{n}", _STORY, published_at="2026-10-15T12:00:00Z") for n in range(14)],
    )
    expect(page.page.locator("#judged")).to_have_text("20")
    expect(page.page.locator("#rate")).not_to_have_text("0")
    expect(page.page.locator("#copies")).to_have_text("100%")
    expect(page.page.locator("#chart .area-copies")).to_have_attribute("d", re.compile("^M.*Z$"))
    assert "copies now" in (page.page.locator("#chart").get_attribute("aria-label") or "")
    expect(page.page.locator("#latest a").first).to_contain_text("late-13")
    expect(page.page.locator("#latest a").first).to_contain_text("exact")


def test_link_is_shown_with_both_texts_and_their_differences(page: Watched) -> None:
    """A link chosen by keyboard is shown with its measures and both original texts, the differences marked."""
    page.page.locator("#latest a", has_text="copy").focus()
    page.page.keyboard.press("Enter")
    expect(page.page.locator(".verdict").first).to_contain_text("“copy” is a copy of “story”.")
    expect(page.page.locator(".texts .body")).to_have_count(2)
    assert page.page.locator(".texts .body").all_text_contents() == [_COPY, _STORY]
    assert page.texts(".texts del") == ["二手冰柜"]
    assert page.texts(".texts ins") == ["静音排烟机"]
    assert page.page.locator("#answer .bits rect").count() == 128
    assert page.page.locator(".words").count() == 2
    assert page.page.evaluate("document.activeElement.id") == "chosen"
    assert page.page.locator("#latest a[aria-current]").inner_text().startswith("near")


def test_article_is_searched_with_its_cluster_and_timeline(page: Watched) -> None:
    """By its id, with all members in order of publication, and a bar for each interval in which any appeared."""
    page.page.get_by_label("Id of an article").fill("part")
    page.page.get_by_role("button", name="Search").click()
    expect(page.page.locator(".verdict").first).to_contain_text("“part” is a copy of “story”.")
    rows = page.page.locator("#answer tbody tr")
    expect(rows.nth(2)).to_contain_text("江畔快讯")
    names = page.texts("#answer tbody tr td:nth-child(2)")
    assert names[:3] == ["story", "part", "copy"]
    assert page.page.locator(".timeline rect").count() >= 3
    rows.nth(0).get_by_role("link").first.click()
    expect(page.page.locator(".verdict").first).to_contain_text("“story” is new")
    page.page.go_back()
    expect(page.page.locator(".verdict").first).to_contain_text("“part” is a copy")


def test_two_articles_are_compared_that_have_no_link(page: Watched) -> None:
    """An article and any other are shown side by side, with the verdict that they are not copies."""
    page.page.get_by_label("Id of an article").fill("weather")
    page.page.locator("summary").click()
    page.page.get_by_label("Compare with (id)").fill("story")
    page.page.get_by_role("button", name="Search").click()
    expect(page.page.locator(".texts .body")).to_have_count(2)
    assert page.page.locator(".texts .body").all_text_contents() == [_OTHER, _STORY]
    expect(page.page.locator("#answer")).to_contain_text("not a copy")


def test_unknown_article_is_said_to_be_unknown(page: Watched) -> None:
    """A search for an unknown id shows the API's message."""
    page.page.get_by_label("Id of an article").fill("nobody")
    page.page.get_by_role("button", name="Search").click()
    expect(page.page.locator("#answer .problem")).to_contain_text("no article 'nobody' is known")


def test_pasted_text_is_told_what_it_is_like(page: Watched) -> None:
    """A copy would be a duplicate of its original, a different text would be unique, and neither is remembered."""
    page.page.get_by_label("Paste a text.").fill(f"【转载】{_STORY}")
    page.page.get_by_role("button", name="Compare").click()
    expect(page.page.locator("#similar-answer .verdict")).to_contain_text("a duplicate of “story”")
    assert page.texts("#similar-answer tbody tr td:nth-child(2)")[0] == "near"
    page.page.get_by_label("Paste a text.").fill(
        "全新的一段文字，讲的是海边的灯塔、守塔的老人和他养的三只猫，与别处毫无相似。"
    )
    page.page.get_by_role("button", name="Compare").click()
    expect(page.page.locator("#similar-answer")).to_contain_text("resembles no known article")


def test_hostile_text_is_shown_and_runs_nothing(page: Watched, site: _Site) -> None:
    """Scripts and images in id, title, source and body are shown as text; they never become elements."""
    page.open(f"/#id={quote(_HOSTILE_ID, safe='')}")
    expect(page.page.locator(".verdict").first).to_contain_text(f"“{_HOSTILE_ID}” is a copy of “plain”.")
    expect(page.page.locator(".texts .body")).to_have_count(2)
    assert page.page.locator(".texts .body").all_text_contents() == [_HOSTILE + _SCRIPT, _HOSTILE]
    expect(page.page.locator(".texts article").first).to_contain_text(_SCRIPT)
    expect(page.page.locator("#answer tbody tr").first).to_contain_text(_PICTURE)
    expect(page.page.locator("#latest")).to_contain_text(_HOSTILE_ID)
    page.page.get_by_label("Paste a text.").fill(_HOSTILE)
    page.page.get_by_role("button", name="Compare").click()
    expect(page.page.locator("#similar-answer")).to_contain_text(_PICTURE)
    assert page.page.evaluate("window.hurt") is None
    assert page.page.locator("img, main script, iframe, object").count() == 0
    assert site.url in page.page.url


def _obeyed(character: str) -> bool:
    """Return whether a terminal or a text layout engine would obey a character instead of displaying it."""
    kind, turn = unicodedata.category(character), unicodedata.bidirectional(character)
    return kind in {"Cc", "Cs", "Zl", "Zp"} or turn in _TURNS or unicodedata.name(character, "") in _MARKS


def test_text_that_turns_its_direction_turns_nothing_around_it(page: Watched, site: _Site) -> None:
    """Title, source and time keep their order whatever they contain; control characters are shown as symbols."""
    foreign = {"title": f"{_REVERSED}עברית abc", "source": f"\u202bمصدر {_REVERSED}def"}
    names = [f"{_REVERSED}turning-{n}" for n in (1, 2)]
    bodies = [_TURNING, _TURNING + "\x9b完"]
    articles = [article(name, body, **foreign) for name, body in zip(names, bodies, strict=True)]
    produce(site.bootstrap, site.topics.input, articles)
    expect(page.page.locator("#latest a", has_text="turning-2")).to_be_visible()
    page.open(f"/#id={quote(names[1])}")
    expect(page.page.locator(".texts .body")).to_have_count(2)
    assert page.page.locator(".texts .body").all_text_contents() == [
        "".join(character if character == "\n" or not _obeyed(character) else _shown(character) for character in body)
        for body in reversed(bodies)
    ]
    title, source = page.page.locator(".texts article").first.locator("p bdi").all()
    boxes = title.bounding_box(), source.bounding_box()
    assert boxes[0] is not None
    assert boxes[1] is not None
    assert boxes[0]["x"] + boxes[0]["width"] < boxes[1]["x"]
    expect(page.page.locator(".verdict").first).to_contain_text("“�turning-2” is a copy of “�turning-1”.")
    shown = page.page.locator("body").inner_text()
    assert [character for character in shown if character not in "\n\t" and _obeyed(character)] == []


def test_every_character_that_is_obeyed_has_a_picture(page: Watched) -> None:
    """In the Basic Multilingual Plane, by Unicode's own tables; all other characters stay."""
    plane = [chr(code) for code in range(0x10000)]
    shown = page.page.evaluate(
        """async () => {
            const { harmless } = await import("/harmless.js");
            return Array.from({ length: 65536 }, (_, code) => harmless(String.fromCharCode(code)).codePointAt(0));
        }"""
    )
    assert [chr(code) for code in shown] == [_shown(one) if _obeyed(one) else one for one in plane]


def _shown(character: str) -> str:
    """Return the symbol for a character that would be obeyed: Unicode has some for the oldest only."""
    return chr(0x2400 + ord(character)) if character < " " else "�"


@pytest.mark.parametrize("locale", ["zh-CN", "zh-TW", "de-DE"])
def test_page_speaks_chinese_to_chinese_browsers(locale: str, site: _Site, browser: Browser) -> None:
    """Chinese if the browser's language is, otherwise English; in both, every label has its text."""
    chinese = locale.startswith("zh")
    with watched(browser, site.url, locale=locale) as page:
        page.open("/#id=copy")
        expect(page.page.locator("#state")).to_have_text("服务运行中" if chinese else "The service is running")
        expect(page.page.locator(".verdict").first).to_contain_text("的副本" if chinese else "is a copy of")
        assert page.page.evaluate("document.documentElement.lang") == ("zh-CN" if chinese else "en")
        assert page.page.locator("[data-word]:text-is('')").count() == 0


@pytest.mark.parametrize(
    ("locale", "line", "told"),
    [
        ("en-GB", "waiting for partitions", "The service is waiting for partitions"),
        ("zh-CN", "waiting for partitions", "服务在等待：输入主题的分区"),
        (
            "zh-CN",
            "waiting for the changelog to be replayed: 1,234 of 5,000 records left",
            "服务在等待：重放变更日志（1,234）",
        ),
        ("zh-CN", f"waiting for {Awaited.STATE}", "服务在等待：读取状态目录，首次启动时还要编译循环"),
        ("zh-CN", "waiting for something new", "服务在等待：something new"),
    ],
)
def test_service_that_waits_is_told_to_wait(locale: str, line: str, told: str, site: _Site, browser: Browser) -> None:
    """It is not shown as running, and what it waits for is shown as its probe says it."""
    with watched(browser, site.url, locale=locale) as page:

        def not_ready(route: Route) -> None:
            answer = route.fetch()
            route.fulfill(response=answer, json={**answer.json(), "ready": False, "not_ready": line})

        page.page.route("**/v1/status*", not_ready)
        page.open()
        expect(page.page.locator("#state")).to_have_text(told)


def test_chinese_page_says_nothing_in_english(site: _Site, browser: Browser) -> None:
    """No verdict, index or error is in English: the only Latin letters are in names."""
    with watched(browser, site.url, locale="zh-CN") as page:
        page.open("/#id=copy")
        expect(page.page.locator(".texts .body")).to_have_count(2)
        expect(page.page.locator("#answer")).to_contain_text("：大多数 n 元组两篇都有")
        expect(page.page.locator("#answer .facts").first).to_contain_text("地标")
        _ask_other(page, "weather", "story")
        expect(page.page.locator("#answer")).to_contain_text("：低于阈值，两篇共有的太少")
        _ask_other(page, "weather", "nobody")
        expect(page.page.locator("#answer")).to_contain_text("没有这篇文章的记录")
        page.page.get_by_label("粘贴一段文字").fill("  ")
        page.page.get_by_role("button", name="比较").click()
        expect(page.page.locator("#similar-answer")).to_have_text("文字是空白的，没有可比较的内容。")
        page.open("/#id=copy")
        expect(page.page.locator(".texts .body")).to_have_count(2)
        own = page.page.evaluate(
            """() => {
                const copy = document.body.cloneNode(true);
                for (const foreign of copy.querySelectorAll("bdi, .body")) foreign.remove();
                const texts = document.createNodeIterator(copy, NodeFilter.SHOW_TEXT);
                const found = [];
                for (let text = texts.nextNode(); text; text = texts.nextNode()) found.push(text.data);
                return found.join(" ").replace(/[0-9a-f]{16}/g, "");
            }"""
        ).replace(site.topics.input, "")
        assert set(re.findall("[A-Za-z_]{2,}", own)) <= {"stream_dedup", "IDF", "Jaccard", "api", "token", "id"}


def _ask_other(page: Watched, article_id: str, other: str) -> None:
    page.page.goto(f"{page.url}/#id={article_id}&other={other}")
    expect(page.page.locator("#answer .problem, #answer .texts, #answer p.quiet").first).to_be_visible()


def test_every_code_ground_and_awaited_thing_has_chinese_words() -> None:
    """All codes of the API, reasons of the engine and things waited for, except those the page can never get."""
    codes = {Code.NOT_HTTP, Code.NOT_JSON, Code.FOREIGN_HOST, Code.NO_PATH, Code.WRONG_METHOD, Code.WRONG_TYPE}
    of_the_api = {Awaited.FIRST_STATE, Awaited.LOOPS, Awaited.STATE_AGAIN}
    script = (REPOSITORY / "stream_dedup/api/page/said.js").read_text(encoding="utf-8")
    for names, words in (
        (set(Code) - codes, "PROBLEMS"),
        (set(VerdictReason), "GROUNDS"),
        (set(Awaited) - of_the_api, "AWAITED"),
    ):
        listed = script.partition(f"const {words} = {{")[2].partition("\n};")[0]
        assert set(re.findall(r'"?(\w[^":]*)"?: "', listed)) == names


def test_both_languages_have_the_same_words(page: Watched) -> None:
    """No label is missing in one of them."""
    english, chinese = page.page.evaluate(
        """async () => {
            const { LANGUAGES } = await import("/words.js");
            return Object.values(LANGUAGES).map((words) => Object.keys(words).sort());
        }"""
    )
    assert english == chinese


@pytest.mark.parametrize("dark", [False, True])
def test_page_fits_a_phone(dark: bool, site: _Site, browser: Browser) -> None:  # noqa: FBT001  # a parameter of the test
    """On a narrow screen nothing overflows to the right, and colours follow the device."""
    with watched(browser, site.url, dark=dark, size=ViewportSize(width=360, height=740)) as page:
        page.open("/#id=copy")
        expect(page.page.locator(".texts .body")).to_have_count(2)
        widths = page.page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert widths[0] == widths[1] <= 360
        red = page.page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0]")
        assert (int(red) < 64) is dark


@pytest.mark.parametrize("width", [1280, 375])
def test_long_sources_leave_room_for_all_columns(width: int, site: _Site, browser: Browser) -> None:
    """On a wide screen every column is visible; on a narrow one a scrollbar reaches the hidden ones."""
    source = "一家名字很长的新闻来源" * 12 + "https://example.com/" + "path" * 60
    story = (
        "河对岸的老面粉厂拆了三年，只剩一座砖砌的水塔，去年有人把它改成了图书馆，螺旋楼梯沿着内壁往上转，书架也跟着转。"
    )
    sent = [article(f"of-{width}-{n}", story, source=source) for n in range(3)]
    produce(site.bootstrap, site.topics.input, sent)
    with watched(browser, site.url, size=ViewportSize(width=width, height=900)) as page:
        page.open()
        expect(page.page.locator("#latest a", has_text=f"of-{width}-2")).to_be_visible()
        page.page.goto(f"{site.url}/#id=of-{width}-2")
        expect(page.page.locator(".texts .body")).to_have_count(2)
        seen, all_of_it, bar = page.page.evaluate(
            """() => {
                const table = document.querySelector("#answer .scroll");
                return [table.clientWidth, table.scrollWidth, table.offsetHeight - table.clientHeight];
            }"""
        )
        assert (all_of_it <= seen, bar > 0) == ((True, False) if width == 1280 else (False, True))
        assert page.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        lines = [page.page.locator(name).bounding_box() for name in ("#stream-time", "#judged")]
        assert lines[0] is not None
        assert lines[1] is not None
        assert lines[0]["height"] == lines[1]["height"]
        assert source in page.page.locator("#answer td.source").first.inner_text()
        assert page.page.locator("#answer td.source").first.get_attribute("title") == source


def test_link_is_told_with_the_epoch_of_its_weights(page: Watched, site: _Site) -> None:
    """If the weights have changed since, the page also says why its numbers differ from the link's."""

    def epochs(locator: str = "#answer .facts") -> list[str]:
        return re.findall(r"IDF epoch\s+(\d+)", " ".join(page.texts(locator)))

    def of_epochs(then: int, now: int) -> None:
        def changed(route: Route) -> None:
            answer = route.fetch()
            told = answer.json()
            route.fulfill(
                response=answer, json={**told, "idf_epoch": now, "decided": {**told["decided"], "idf_epoch": then}}
            )

        page.page.unroute_all()
        page.page.route("**/v1/reason*", changed)
        page.open("/#id=copy")
        page.page.reload()
        expect(page.page.locator(".texts .body")).to_have_count(2)

    link = httpx2.get(f"{site.url}/v1/article?id=copy").json()["link"]
    of_epochs(7, 7)
    assert epochs() == [str(link["idf_epoch"]), "7"]
    assert "decided with the weights" not in page.text("#answer")
    of_epochs(6, 7)
    assert "decided with the weights of IDF epoch 6; measured here with those of epoch 7" in page.text("#answer")


def test_more_members_are_asked_for_once_at_a_time(site: _Site, browser: Browser) -> None:
    """However often the button is pressed; if no answer comes the page says so, and it can be pressed again."""
    with watched(browser, site.url) as page:
        asked: list[str] = []

        def pages(route: Route) -> None:
            # The same members again, as if the cluster had twice as many.
            answer = route.fetch(url=re.sub(r"&offset=\d+", "", route.request.url))
            whole = answer.json()
            if "offset" in route.request.url:
                asked.append(route.request.url)
                if len(asked) == 1:
                    return route.abort()
                page.page.wait_for_timeout(200)
            return route.fulfill(response=answer, json={**whole, "known": 2 * whole["known"]})

        page.page.route("**/v1/cluster*", pages)
        page.open("/#id=copy")
        rows, more = page.page.locator("#answer tbody tr"), page.page.get_by_role("button", name="more")
        expect(more).to_be_visible()
        before = rows.count()
        more.click()
        expect(page.page.locator("#answer .problem")).not_to_be_empty()
        assert rows.count() == before
        more.evaluate("button => { button.click(); button.click(); }")
        expect(more).to_be_hidden()
        expect(page.page.locator("#answer .problem")).to_be_empty()
        assert (len(asked), rows.count()) == (2, 2 * before)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"link": {"matched": None}}, "“copy” is a copy of an article that is no longer known."),
        ({"link": None, "relation": "revision"}, "“copy” counts as a duplicate: revision."),
    ],
)
def test_duplicate_whose_original_is_not_known_is_told(
    changed: dict[str, Any], told: str, site: _Site, browser: Browser
) -> None:
    """It is not shown as a copy of itself, even if its cluster has its id."""
    with watched(browser, site.url) as page:

        def without(route: Route) -> None:
            answer = route.fetch()
            article = answer.json()
            link = {**article["link"], **changed["link"]} if changed["link"] else None
            route.fulfill(response=answer, json={**article, **changed, "link": link, "canonical": "copy"})

        page.page.route("**/v1/article*", without)
        page.open("/#id=copy")
        expect(page.page.locator("#answer .verdict").first).to_contain_text(told)


def test_second_text_that_was_revised_is_told(site: _Site, browser: Browser) -> None:
    """The measures shown are then those of another text than the link's."""
    with watched(browser, site.url) as page:

        def revised(route: Route) -> None:
            answer = route.fetch()
            route.fulfill(response=answer, json={**answer.json(), "revised": True})

        page.open("/#id=copy")
        expect(page.page.locator(".texts .body")).to_have_count(2)
        assert "has been revised" not in page.text("#answer")
        page.page.route("**/v1/reason*", revised)
        page.page.reload()
        expect(page.page.locator("#answer")).to_contain_text("The second article has been revised since it was matched")


def test_token_is_asked_for_and_kept_for_the_tab(site: _Site, browser: Browser) -> None:
    """Without the right token the page only asks for it; with it everything is shown, even after a reload."""
    with _guarded_api(site) as url, watched(browser, url) as page:
        page.open()
        expect(page.page.locator("#state")).to_have_text("The API needs its token")
        for given in ("a-wrong-token-of-a-kind", _TOKEN):
            assert page.text("#judged") == "–"
            page.page.get_by_label("Token (api.token)").fill(given)
            page.page.get_by_role("button", name="Enter").click()
            page.page.wait_for_load_state("networkidle")
        expect(page.page.locator("#state")).not_to_have_text("The API needs its token")
        expect(page.page.locator("#judged")).not_to_have_text("–")
        page.page.reload()
        expect(page.page.locator("#judged")).not_to_have_text("–")
        assert page.page.evaluate("localStorage.length + document.cookie.length") == 0


@contextmanager
def _guarded_api(site: _Site) -> Iterator[str]:
    """Serve the site's state a second time, with a token; yield the address."""
    file = site.service.directory / "stream-dedup.toml"
    log: Path = site.service.directory / "guarded.log"
    command = [sys.executable, "-m", "stream_dedup", "api", "-c", str(file), "-s", "api.port=0"]
    environment = clean_environment({"STREAM_DEDUP_API__TOKEN": _TOKEN})
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=REPOSITORY, env=environment, stdout=output, stderr=output)
    try:
        wait_until(lambda: "answering" in log.read_text(), "the guarded API", 180)
        yield log.read_text().split('"api": "')[1].split('"')[0]
    finally:
        process.kill()
        process.wait()


def test_differences_give_back_both_texts(page: Watched) -> None:
    """What both share and what one has alone, in order, add up to that text, for any two texts."""
    rng = random.Random(7)
    pairs = [["".join(rng.choices("一二三四。！\n a𝒳", k=rng.randrange(40))) for _ in range(2)] for _ in range(400)]
    found = page.page.evaluate(
        """async (pairs) => {
            const { differences } = await import("/differences.js");
            return pairs.map(([first, second]) => {
                const { pieces } = differences(first, second);
                const of = (side) => pieces.filter((one) => [side, "both"].includes(one.side)).map((one) => one.text);
                return [of("first").join(""), of("second").join("")];
            });
        }""",
        pairs,
    )
    assert found == pairs


def test_long_texts_are_compared_in_bounded_time(page: Watched) -> None:
    """Two texts of 200,000 characters with nothing in common are shown as a replacement."""
    pieces = page.page.evaluate(
        """async () => {
            const { differences } = await import("/differences.js");
            const letter = (letters) => (_, at) => letters[(at * at) % 7] + (at % 9 ? "" : "。");
            const text = (letters) => Array.from({ length: 200000 }, letter(letters)).join("");
            return differences(text("甲乙丙丁戊己庚"), text("子丑寅卯辰巳午")).pieces.map((piece) => piece.side);
        }"""
    )
    assert pieces == ["first", "second"]
