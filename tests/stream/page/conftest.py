"""The page in a browser, on a service that has judged the articles of its tests.

Knows how it is opened; knows nothing of what it shows.
"""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.stream.chromium import Watched, chromium, watched
from tests.stream.page.site import Site, running_site


@pytest.fixture(scope="module")
def site(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A service with its API that has judged a story with copies, another story, and hostile text."""
    with running_site(bootstrap, tmp_path_factory.mktemp("page")) as one:
        yield one


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The machine's browser."""
    with chromium(scrollbars=True) as one:
        yield one


@pytest.fixture
def page(site: Site, browser: Browser) -> Iterator[Watched]:
    """The page, open."""
    with watched(browser, site.url) as one:
        yield one.open()
