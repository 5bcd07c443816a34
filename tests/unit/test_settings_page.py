"""The tables of settings in config/README.md and README.md."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from stream_dedup.engine.comparability import comparability
from stream_dedup.settings import EngineSettings
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


def test_page_names_the_settings_that_a_state_depends_on() -> None:
    """Those that it names need another state when they change, and no others do."""
    told = re.search(
        r"^Stored fingerprints depend on (.*?) \(except (.*?)\), (.*?), and on the contents of the word lists",
        PAGE.read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    assert told
    wholly, exceptions, others = map(_settings_in, told.groups())
    assert {*wholly, *others} - {*exceptions} == set(comparability(EngineSettings()))


def _settings_in(text: str) -> Iterator[str]:
    """Yield the settings that a text names: a group is all of its settings, a dot stands for the group before."""
    groups, group = EngineSettings().model_dump(), ""
    for name in re.findall(r"`([\w.]+)`", text):
        group = name.split(".")[0] or group
        if name in groups:
            yield from (f"{name}.{setting}" for setting in groups[name])
        else:
            yield f"{group}.{name.split('.')[1]}"
