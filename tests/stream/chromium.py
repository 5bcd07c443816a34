"""A headless Chromium of this machine, and pages in it that are watched.

Knows how to get Chromium and what a page of ours must never do; knows nothing of what it shows.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

from tests.programs import found

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_HOW = "`apt-get install chromium fonts-noto-cjk` on Debian"
_MILLISECONDS = 20_000
_DESKTOP = ViewportSize(width=1280, height=900)


@contextmanager
def chromium(*, scrollbars: bool = False) -> Iterator[Browser]:
    """Run a browser; see `found`.

    Args:
        scrollbars: whether they are drawn, which without a screen they else are not.
    """
    path = found(*_NAMES, how=_HOW)
    expect.set_options(timeout=_MILLISECONDS)
    with sync_playwright() as playwright:
        # In containers, where root runs the tests, Chromium's own sandbox cannot be set up.
        browser = playwright.chromium.launch(
            executable_path=path,
            args=["--no-sandbox"],
            ignore_default_args=["--hide-scrollbars"] if scrollbars else None,
        )
        yield browser
        browser.close()


@dataclass(slots=True)
class Watched:
    """A page that is open, and what it did.

    Attributes:
        page: to look at.
        url: of the API.
        complaints: what the browser told, other than of answers that are errors.
        elsewhere: requests to other addresses.
    """

    page: Page
    url: str
    complaints: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)

    def open(self, path: str = "/") -> "Watched":
        """Go to a path, and wait until the page has looked at the service."""
        self.page.goto(self.url + path)
        expect(self.page.locator("#state")).not_to_be_empty()
        return self

    def text(self, selector: str) -> str:
        """Return what stands in an element."""
        return self.page.locator(selector).inner_text()

    def texts(self, selector: str) -> list[str]:
        """Return what stands in each of some elements."""
        return self.page.locator(selector).all_inner_texts()


@contextmanager
def watched(
    browser: Browser, url: str, *, locale: str = "en-GB", dark: bool = False, size: ViewportSize = _DESKTOP
) -> Iterator[Watched]:
    """Open a window, and check in the end that its page complained of nothing and asked nobody else.

    Args:
        browser: whose window.
        url: of the API.
        locale: language of the browser.
        dark: whether the device wants dark colours.
        size: of the window, in pixels.
    """
    with browser.new_context(
        locale=locale, color_scheme="dark" if dark else "light", viewport=size, timezone_id="Asia/Shanghai"
    ) as context:
        page = context.new_page()
        page.set_default_timeout(_MILLISECONDS)
        one = Watched(page, url)
        page.on("pageerror", lambda error: one.complaints.append(str(error)))
        page.on("dialog", lambda dialog: one.complaints.append(f"dialog: {dialog.message}"))
        page.on(
            "console",
            # A browser tells of each answer with an error status; which these are is for the tests to say.
            lambda line: one.complaints.append(line.text) if "Failed to load resource" not in line.text else None,
        )
        page.on(
            "request",
            lambda request: (
                one.elsewhere.append(request.url) if not request.url.startswith((f"{url}/", "data:")) else None
            ),
        )
        yield one
        assert one.complaints == []
        assert one.elsewhere == []
