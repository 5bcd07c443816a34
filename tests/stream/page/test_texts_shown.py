"""Texts on the page: in the user's language, on any screen, with their differences, and harmless whatever they are.

Knows languages, characters and screens; what the page tells of decisions is tested in test_decisions_shown.
"""

import random
import re
import unicodedata
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Route, ViewportSize, expect

from stream_dedup.api.problems import Code
from stream_dedup.article import VerdictReason
from stream_dedup.observe.health import Awaited
from tests.stream.arguments import REPOSITORY
from tests.stream.chromium import Watched, watched
from tests.stream.messages import article, produce
from tests.stream.page.site import HOSTILE, HOSTILE_ID, PICTURE, SCRIPT, Site

pytestmark = pytest.mark.usefixtures("compiled")
_REVERSED = "\u202e"  # from here on right to left
_TURNING = (
    f"修表的老林在巷口坐了二十年，{_REVERSED}他的工具箱里有一把\x1b[31m祖父留下的镊子\x07，\n他说表走得准不准要听，"
    "\u2067不要看，街坊的钟慢了都抱来给他，\x00他一听就知道是哪个齿轮缺了油。"
)
# Bidirectional control characters, by Unicode's bidirectional algorithm.
_TURNS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
_MARKS = {"LEFT-TO-RIGHT MARK", "RIGHT-TO-LEFT MARK", "ARABIC LETTER MARK"}


def test_hostile_text_is_shown_and_runs_nothing(page: Watched, site: Site) -> None:
    """Scripts and images in id, title, source and body are shown as text; they never become elements."""
    page.open(f"/#id={quote(HOSTILE_ID, safe='')}")
    expect(page.page.locator(".verdict").first).to_contain_text(f"“{HOSTILE_ID}” is a copy of “plain”.")
    expect(page.page.locator(".texts .body")).to_have_count(2)
    assert page.page.locator(".texts .body").all_text_contents() == [HOSTILE + SCRIPT, HOSTILE]
    expect(page.page.locator(".texts article").first).to_contain_text(SCRIPT)
    expect(page.page.locator("#answer tbody tr").first).to_contain_text(PICTURE)
    expect(page.page.locator("#latest")).to_contain_text(HOSTILE_ID)
    page.page.get_by_label("Paste a text.").fill(HOSTILE)
    page.page.get_by_role("button", name="Compare").click()
    expect(page.page.locator("#similar-answer")).to_contain_text(PICTURE)
    assert page.page.evaluate("window.hurt") is None
    assert page.page.locator("img, main script, iframe, object").count() == 0
    assert site.url in page.page.url


def _obeyed(character: str) -> bool:
    """Return whether a terminal or a text layout engine would obey a character instead of displaying it."""
    kind, turn = unicodedata.category(character), unicodedata.bidirectional(character)
    return kind in {"Cc", "Cs", "Zl", "Zp"} or turn in _TURNS or unicodedata.name(character, "") in _MARKS


def test_text_that_turns_its_direction_turns_nothing_around_it(page: Watched, site: Site) -> None:
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
def test_page_speaks_chinese_to_chinese_browsers(locale: str, site: Site, browser: Browser) -> None:
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
            "服务在等待：重放变更日志（剩 1,234，共 5,000）",
        ),
        (
            "zh-CN",
            "waiting for decided messages to be judged again: 7 of 90 messages left, about 3 min",
            "服务在等待：重新判定消费组已判定的文章（剩 7，共 90，约 3 分钟）",
        ),
        ("zh-CN", "waiting for the changelog to be replayed: 12 records left", "服务在等待：重放变更日志（12）"),
        ("zh-CN", f"waiting for {Awaited.STATE}", "服务在等待：读取状态目录，首次启动时还要编译计算函数"),
        ("zh-CN", "waiting for something new", "服务在等待：something new"),
    ],
)
def test_service_that_waits_is_told_to_wait(locale: str, line: str, told: str, site: Site, browser: Browser) -> None:
    """It is not shown as running, and what it waits for is shown as its probe says it."""
    with watched(browser, site.url, locale=locale) as page:

        def not_ready(route: Route) -> None:
            answer = route.fetch()
            route.fulfill(response=answer, json={**answer.json(), "ready": False, "not_ready": line})

        page.page.route("**/v1/status*", not_ready)
        page.open()
        expect(page.page.locator("#state")).to_have_text(told)


@pytest.mark.parametrize(
    ("question", "status", "body", "told"),
    [
        ("status", 502, "<html>Bad Gateway</html>", "502 Bad Gateway"),
        ("status", 503, '{"detail": "there is no state yet", "code": "unavailable"}', "there is no state yet"),
        ("status", 500, "", "500 Internal Server Error"),
        (
            "latest",
            503,
            '{"detail": "the broker does not answer", "code": "unavailable"}',
            "the broker does not answer",
        ),
    ],
)
def test_service_that_cannot_answer_is_not_shown_as_running(
    question: str, status: int, body: str, told: str, site: Site, browser: Browser
) -> None:
    """What the API, or a proxy before it, says instead is shown until it answers again."""
    with watched(browser, site.url) as page:
        page.open()
        state = page.page.locator("#state")
        expect(state).to_have_text("The service is running")
        page.page.route(f"**/v1/{question}*", lambda route: route.fulfill(status=status, body=body))
        expect(state).to_have_text(told)
        expect(state).to_have_class("ill")
        page.page.unroute(f"**/v1/{question}*")
        expect(state).to_have_text("The service is running")


def test_chinese_page_says_nothing_in_english(site: Site, browser: Browser) -> None:
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
    """No label is missing in one of them; the words of a verdict are among them."""
    english, chinese = page.page.evaluate(
        """async () => {
            const { LANGUAGES } = await import("/words.js");
            return Object.values(LANGUAGES).map((words) => Object.keys(words).sort());
        }"""
    )
    assert english == chinese
    assert set(VerdictReason) <= set(english)


@pytest.mark.parametrize("dark", [False, True])
def test_page_fits_a_phone(dark: bool, site: Site, browser: Browser) -> None:  # noqa: FBT001  # a parameter of the test
    """On a narrow screen nothing overflows to the right, and colours follow the device."""
    with watched(browser, site.url, dark=dark, size=ViewportSize(width=360, height=740)) as page:
        page.open("/#id=copy")
        expect(page.page.locator(".texts .body")).to_have_count(2)
        widths = page.page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert widths[0] == widths[1] <= 360
        red = page.page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0]")
        assert (int(red) < 64) is dark


@pytest.mark.parametrize("width", [1280, 375])
def test_long_sources_leave_room_for_all_columns(width: int, site: Site, browser: Browser) -> None:
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
