"""The tables of settings in config/README.md and README.md."""

from pathlib import Path

import pytest

from stream_dedup.settings.schema import Settings
from tests.settings_page import BEGIN, PAGE, PAGES, renewed


@pytest.mark.parametrize("path", PAGES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_page_holds_the_settings_of_now(path: Path) -> None:
    """The tables are generated from the settings; `make settings-page` updates them."""
    page = path.read_text(encoding="utf-8")
    assert page.count(BEGIN) == 1
    assert page == renewed(page, PAGES[path]())


def test_page_names_every_setting() -> None:
    """No setting is missing from the page."""
    page = PAGE.read_text(encoding="utf-8")
    for group, values in Settings().model_dump().items():
        names = [f"{group}.{name}" for name in values] if group not in {"kafka", "registry"} else [group]
        for name in names:
            assert f"`{name}`" in page or f"### {name}" in page, name
