"""The machine's headless Chromium, with pages that are watched for errors.

Knows how to get Chromium and what one of our pages must never do; knows nothing of what a page shows.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

from tests.programs import found

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_HOW = "`apt-get install chromium fonts-noto-cjk` on Debian"
_MILLISECONDS = 60_000  # for what a page does, or the browser, on a busy machine
_DESKTOP = ViewportSize(width=1280, height=900)


@contextmanager
def chromium(*, scrollbars: bool = False) -> Iterator[Browser]:
    """Run a browser; see `found`.

    Args:
        scrollbars: whether to draw them; headless Chromium hides them by default.
    """
    path = found(*_NAMES, how=_HOW)
    expect.set_options(timeout=_MILLISECONDS)
    with sync_playwright() as playwright:
        # In containers, where tests run as root, Chromium's own sandbox cannot be set up.
        browser = playwright.chromium.launch(
            executable_path=path,
            args=["--no-sandbox"],
            timeout=_MILLISECONDS,
            ignore_default_args=["--hide-scrollbars"] if scrollbars else None,
        )
        yield browser
        browser.close()


@dataclass(slots=True)
class Watched:
    """An open page, and what it did.

    Attributes:
        page: to look at.
        url: of the API.
        complaints: what the browser reported, except responses with an error status.
        elsewhere: requests to other addresses.
    """

    page: Page
    url: str
    complaints: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)

    def open(self, path: str = "/") -> "Watched":
        """Go to a path, and wait until the page has queried the service."""
        self.page.goto(self.url + path)
        expect(self.page.locator("#state")).not_to_be_empty()
        return self

    def text(self, selector: str) -> str:
        """Return the text of an element."""
        return self.page.locator(selector).inner_text()

    def texts(self, selector: str) -> list[str]:
        """Return the text of each matching element."""
        return self.page.locator(selector).all_inner_texts()


@contextmanager
def watched(
    browser: Browser, url: str, *, locale: str = "en-GB", dark: bool = False, size: ViewportSize = _DESKTOP
) -> Iterator[Watched]:
    """Open a window; at the end, check that its page reported no errors and contacted no other address.

    Args:
        browser: to open it in.
        url: of the API.
        locale: language of the browser.
        dark: whether the device prefers dark colours.
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
            # The browser logs every response with an error status; whether one is expected is up to the tests.
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
