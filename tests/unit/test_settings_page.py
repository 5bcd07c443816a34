"""The settings page in config/README.md."""

from stream_dedup.settings.schema import Settings
from tests.settings_page import PAGE, renewed


def test_page_holds_the_settings_of_now() -> None:
    """The table in config/README.md is the one that the settings print; `make settings-page` renews it."""
    page = PAGE.read_text(encoding="utf-8")
    assert page == renewed(page)


def test_page_names_every_setting() -> None:
    """No setting is left out of the page."""
    page = PAGE.read_text(encoding="utf-8")
    for group, values in Settings().model_dump().items():
        names = [f"{group}.{name}" for name in values] if group != "kafka" else ["kafka"]
        for name in names:
            assert f"`{name}`" in page or f"### {name}" in page, name
