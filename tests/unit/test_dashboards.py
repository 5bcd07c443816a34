"""The dashboard files are what the code generates, and describe what they show."""

import json
import re
from itertools import pairwise
from typing import Any

import pytest
import yaml

from deploy.dashboards import DASHBOARDS, FOLDER, Page
from deploy.dashboards.frame import TAG
from deploy.dashboards.queries import metric_names, recorded_names
from deploy.prometheus.ruleset import all_rules
from tests.unit.catalogued import known_names

_PROVISIONING = FOLDER.parent / "provisioning"
_WIDTH = 24

Fields = dict[str, Any]


def _fields(page: Page) -> Fields:
    fields: Fields = json.loads((FOLDER / f"{page.name}.json").read_text(encoding="utf-8"))
    return fields


def _panels(page: Page) -> list[Fields]:
    return [panel for panel in _fields(page)["panels"] if panel["type"] != "row"]


def _expressions(page: Page) -> list[str]:
    annotations: list[str] = [one["expr"] for one in _fields(page)["annotations"]["list"]]
    return annotations + [target["expr"] for panel in _panels(page) for target in panel["targets"]]


def test_files_are_what_the_code_makes() -> None:
    """There is exactly one file per dashboard; `make dashboards` regenerates them."""
    assert {file.name for file in FOLDER.iterdir()} == {f"{page.name}.json" for page in DASHBOARDS}
    for page in DASHBOARDS:
        assert (FOLDER / f"{page.name}.json").read_text(encoding="utf-8") == page.json(), page.name


@pytest.mark.parametrize("page", DASHBOARDS, ids=lambda page: page.name)
def test_each_panel_says_what_it_shows(page: Page) -> None:
    """Each has a title, a unit, a description that names its metrics, a legend per query, and a unique number."""
    panels = _panels(page)
    for panel in panels:
        assert panel["title"]
        assert panel["description"], panel["title"]
        if panel["type"] != "state-timeline":
            assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        for target in panel["targets"]:
            assert all(
                re.sub(r"_(bucket|sum|count)$", "", name) in panel["description"]
                for name in metric_names(target["expr"])
            )
            assert target["legendFormat"]
    numbers = [panel["id"] for panel in _fields(page)["panels"]]
    assert len({*numbers}) == len(numbers)


@pytest.mark.parametrize("page", DASHBOARDS, ids=lambda page: page.name)
def test_panels_fill_their_lines(page: Page) -> None:
    """Panels leave no gaps between the rows of a dashboard, and do not overlap."""
    taken = [
        (column, line)
        for panel in _fields(page)["panels"]
        for column in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for line in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    lines = max(line for _, line in taken) + 1
    assert len({*taken}) == len(taken)
    assert {*taken} == {(column, line) for column in range(_WIDTH) for line in range(lines)}


@pytest.mark.parametrize("page", DASHBOARDS, ids=lambda page: page.name)
def test_no_dashboard_names_a_metric_that_does_not_exist(page: Page) -> None:
    """Every metric is in the catalogue, every recorded series in the rules."""
    recorded = {rule.name for rule in all_rules() if not rule.alert}
    for expression in _expressions(page):
        assert {*metric_names(expression)} <= known_names(), expression
        assert {*recorded_names(expression)} <= recorded, expression
        assert metric_names(expression) or recorded_names(expression) or "ALERTS{" in expression, expression


@pytest.mark.parametrize("page", DASHBOARDS, ids=lambda page: page.name)
def test_queries_select_what_the_variables_say(page: Page) -> None:
    """Every selector has namespace and job and, except for recorded series, instance."""
    for expression in _expressions(page):
        selectors = re.findall(r"(\S*?)\{([^}]*)\}", expression)
        assert selectors
        for name, matchers in selectors:
            assert 'namespace=~"$namespace"' in matchers, expression
            assert 'job=~"$job' in matchers, expression
            assert ("ALERTS" in name or "job:" in name) != ('instance=~"$instance"' in matchers), expression
        assert "$of" not in expression
        assert "$index" not in expression


@pytest.mark.parametrize("page", DASHBOARDS, ids=lambda page: page.name)
def test_dashboards_have_variables_annotations_and_links(page: Page) -> None:
    """Data source, index and processes can be selected; starts and epochs are marked; there are links."""
    fields = _fields(page)
    assert [one["name"] for one in fields["templating"]["list"]] == ["datasource", "namespace", "job", "instance"]
    assert [one["name"] for one in fields["annotations"]["list"]] == ["Start", "IDF epoch"]
    (link,) = fields["links"]
    assert (link["type"], link["tags"], link["keepTime"], link["includeVars"]) == ("dashboards", [TAG], True, True)
    assert TAG in fields["tags"]
    assert fields["uid"] == page.name
    for panel in _panels(page):
        assert panel["datasource"]["uid"] == "$datasource"


@pytest.mark.parametrize("page", DASHBOARDS, ids=lambda page: page.name)
def test_limits_ascend(page: Page) -> None:
    """A panel's colour limits ascend, and the first has no lower bound."""
    for panel in _panels(page):
        steps = panel["fieldConfig"]["defaults"].get("thresholds", {}).get("steps", [])
        values = [step["value"] for step in steps]
        assert values[:1] in ([], [None])
        assert all(low < high for low, high in pairwise(values[1:]))


def test_provisioning_fits_together() -> None:
    """Data source and dashboard provider are valid for Grafana, and its interval is that of the scrapes."""
    (source,) = yaml.safe_load((_PROVISIONING / "datasources" / "prometheus.yaml").read_text("utf-8"))["datasources"]
    (provider,) = yaml.safe_load((_PROVISIONING / "dashboards" / "stream-dedup.yaml").read_text("utf-8"))["providers"]
    config = yaml.safe_load((FOLDER.parents[1] / "prometheus" / "prometheus.yaml").read_text("utf-8"))
    assert source["type"] == "prometheus"
    assert source["jsonData"]["timeInterval"] == config["global"]["scrape_interval"]
    assert (provider["type"], provider["options"]["path"]) == ("file", "/var/lib/grafana/dashboards")
