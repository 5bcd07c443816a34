"""The page, in a real browser on a real service: it shows what was decided, and answers what is asked.

Knows what a reader sees and clicks; how texts are shown is tested in test_texts_shown.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Browser, Route, expect

from tests.stream.arguments import REPOSITORY, clean_environment
from tests.stream.chromium import Watched, watched
from tests.stream.messages import article, produce
from tests.stream.page.site import COPY, OTHER, STORY, Site
from tests.stream.waiting import wait_until

pytestmark = pytest.mark.usefixtures("compiled")
_TOKEN = "a-token-of-some-length"  # noqa: S105  # used only in this test


def test_rate_and_shares_are_those_of_the_stream(page: Watched, site: Site) -> None:
    """Shares are shown by relation; as articles arrive, the rate, its chart and the total follow."""
    expect(page.page.locator("#judged")).to_have_text("6")
    # The API waits for the service's own figures for a second at most, and asks again for the next look.
    expect(page.page.locator("#state")).to_have_text("The service is running")
    expect(page.page.locator("#shares th")).to_have_text(["new", "near", "exact"])
    expect(page.page.locator("#shares td.number")).to_have_text(["50%", "33.3%", "16.7%"])
    expect(page.page.locator("#waiting")).to_have_text("0")  # updated every few seconds
    produce(
        site.bootstrap,
        site.topics.input,
        [article(f"late-{n}", STORY, published_at="2026-10-15T12:00:00Z") for n in range(14)],
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
    assert page.page.locator(".texts .body").all_text_contents() == [COPY, STORY]
    assert page.texts(".texts del") == ["二手冰柜"]
    assert page.texts(".texts ins") == ["静音排烟机"]
    assert page.page.locator("#answer .bits rect").count() == 128
    assert page.page.locator(".words").count() == 2
    assert page.page.evaluate("document.activeElement.id") == "chosen"
    assert page.page.locator("#latest a[aria-current]").inner_text().startswith("near")
    page.page.locator(".skip").focus()
    page.page.keyboard.press("Enter")
    assert page.page.evaluate("document.activeElement.id") == "chosen"
    expect(page.page.locator(".verdict").first).to_contain_text("“copy” is a copy of “story”.")
    expect(page.page.get_by_label("Id of an article")).to_have_value("copy")


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
    assert page.page.locator(".texts .body").all_text_contents() == [OTHER, STORY]
    expect(page.page.locator("#answer")).to_contain_text("not a copy")


def test_form_holds_what_is_shown(page: Watched) -> None:
    """What was asked before would be asked again with the next id; what an address compares with can be seen."""
    answer, forms = page.page.locator("#answer"), page.page.locator("#search")

    def asked() -> list[str]:
        return [forms.locator(f"[name={name}]").input_value() for name in ("id", "scope", "other")]

    expect(answer).to_contain_text("Choose one of the latest links")
    page.page.evaluate("location.hash = '#id=weather&other=story'")
    expect(answer).to_contain_text("not a copy")
    assert asked() == ["weather", "", "story"]
    expect(page.page.get_by_label("Compare with (id)")).to_be_visible()
    page.page.locator("#latest a", has_text="copy").click()
    expect(page.page.locator(".verdict").first).to_contain_text("“copy” is a copy of “story”.")
    assert asked() == ["copy", "", ""]
    page.page.go_back()
    page.page.go_back()
    expect(answer).to_have_text(re.compile("^Choose one of the latest links"))
    assert asked() == ["", "", ""]


def test_unknown_article_is_said_to_be_unknown(page: Watched) -> None:
    """A search for an unknown id shows the API's message."""
    page.page.get_by_label("Id of an article").fill("nobody")
    page.page.get_by_role("button", name="Search").click()
    expect(page.page.locator("#answer .problem")).to_contain_text("no article 'nobody' is known")


def test_pasted_text_is_told_what_it_is_like(page: Watched) -> None:
    """A copy would be a duplicate of its original, a different text would be unique, and neither is remembered."""
    page.page.get_by_label("Paste a text.").fill(f"【转载】{STORY}")
    page.page.get_by_role("button", name="Compare").click()
    expect(page.page.locator("#similar-answer .verdict")).to_contain_text("a duplicate of “story”")
    assert page.texts("#similar-answer tbody tr td:nth-child(2)")[0] == "near"
    page.page.get_by_label("Paste a text.").fill(
        f"{STORY[85:]}当地人说，河边的老戏台也要在年底前修好，届时会请邻县的剧团来唱三天大戏，戏票分文不收，先到先坐，茶水管够。"
    )
    page.page.get_by_role("button", name="Compare").click()
    expect(page.page.locator("#similar-answer .verdict")).to_contain_text("would be unique")
    assert "not a copy: too little in common" in page.texts("#similar-answer tbody tr td:nth-child(2)")
    page.page.get_by_label("Paste a text.").fill(
        "全新的一段文字，讲的是海边的灯塔、守塔的老人和他养的三只猫，与别处毫无相似。"
    )
    page.page.get_by_role("button", name="Compare").click()
    expect(page.page.locator("#similar-answer")).to_contain_text("resembles no known article")


def test_link_is_told_with_the_epoch_of_its_weights(page: Watched, site: Site) -> None:
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

    link = httpx2.get(f"{site.url}/v1/article?id=copy", timeout=60).json()["link"]
    of_epochs(7, 7)
    assert epochs() == [str(link["idf_epoch"]), "7"]
    assert "decided with the weights" not in page.text("#answer")
    of_epochs(6, 7)
    assert "decided with the weights of IDF epoch 6; measured here with those of epoch 7" in page.text("#answer")


def test_more_members_are_asked_for_once_at_a_time(site: Site, browser: Browser) -> None:
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
    changed: dict[str, Any], told: str, site: Site, browser: Browser
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


def test_second_text_that_was_revised_is_told(site: Site, browser: Browser) -> None:
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


def test_token_is_asked_for_and_kept_for_the_tab(site: Site, browser: Browser) -> None:
    """Until the right token is given the page only asks for it, and says if one was wrong; it is kept over a reload."""
    with _guarded_api(site) as url, watched(browser, url) as page:
        page.open()
        expect(page.page.locator("#state")).to_have_text("The API needs its token")
        form = page.page.locator("#token-form")
        for given in ("a-wrong-token-of-a-kind", "令牌令牌令牌令牌令牌令牌", _TOKEN):
            expect(form).to_be_visible()
            assert page.text("#judged") == "–"
            page.page.get_by_label("Token (api.token)").fill(given)
            page.page.get_by_role("button", name="Enter").click()
            if given != _TOKEN:
                expect(page.page.locator("#state")).to_have_text("This is not the API's token")
        expect(page.page.locator("#state")).not_to_have_text("This is not the API's token")
        expect(page.page.locator("#judged")).not_to_have_text("–")
        page.page.reload()
        expect(page.page.locator("#judged")).not_to_have_text("–")
        assert page.page.evaluate("localStorage.length + document.cookie.length") == 0


@contextmanager
def _guarded_api(site: Site) -> Iterator[str]:
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
