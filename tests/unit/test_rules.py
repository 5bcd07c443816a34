"""The rule files: their names exist, and each alert is explained, tested, and says how to fix the cause."""

import re
from pathlib import Path

import pytest
import yaml

from deploy.dashboards.queries import metric_names, recorded_names
from deploy.prometheus.ruleset import CONFIG, RULES, TESTS, Rule, all_rules, with_times_shortened, write_config
from tests.unit.catalogued import known_names

_RUNBOOK = CONFIG.parents[1] / "runbook.md"
_ALERTS = [rule for rule in all_rules() if rule.alert]
_SECTIONS = ("Impact", "Look", "Do", "Ends")


def _of_name(rule: Rule) -> str:
    return rule.name


def test_names_are_unique() -> None:
    """Names of rules are unique, and so are those of rule groups."""
    names = [rule.name for rule in all_rules()]
    groups = [group["name"] for file in RULES for group in yaml.safe_load(file.read_text("utf-8"))["groups"]]
    assert len({*names}) == len(names)
    assert len({*groups}) == len(groups)


@pytest.mark.parametrize("rule", all_rules(), ids=_of_name)
def test_no_rule_names_a_metric_that_does_not_exist(rule: Rule) -> None:
    """Every metric is in the catalogue, every recorded series is recorded."""
    recorded = {one.name for one in all_rules() if not one.alert}
    assert {*metric_names(rule.expression)} <= known_names()
    assert {*recorded_names(rule.expression)} <= recorded


@pytest.mark.parametrize("rule", _ALERTS, ids=_of_name)
def test_each_alert_says_what_it_is_and_where_to_read_on(rule: Rule) -> None:
    """Severity, summary and description, and a link to a runbook section with the same severity."""
    assert re.fullmatch(r"StreamDedup[A-Z]\w+", rule.name)
    assert rule.labels == {"severity": rule.labels["severity"]}
    assert rule.labels["severity"] in {"critical", "warning"}
    assert set(rule.annotations) == {"summary", "description", "runbook_url"}
    assert rule.annotations["runbook_url"] == f"deploy/runbook.md#{rule.name.lower()}"
    section = _sections()[rule.name]
    assert section.startswith(f"{rule.labels['severity']} · ")
    for part in _SECTIONS:
        assert re.search(rf"\*\*[\w, ]*\b{part}\b", section, re.IGNORECASE), part


def test_the_runbook_has_no_section_too_many() -> None:
    """Each section belongs to an alert, in the order of the alerts."""
    assert [*_sections()] == [rule.name for rule in _ALERTS]


def test_panels_that_the_runbook_names_exist() -> None:
    """Each name in italics is that of a dashboard or a panel."""
    folder = _RUNBOOK.parent / "grafana" / "dashboards"
    texts = "".join(file.read_text("utf-8") for file in folder.iterdir())
    titles = set(re.findall(r'"title": "([^"]+)"', texts)) | {
        "overview",
        "index and RocksDB",
        "detection",
        "Kafka and state",
    }
    named = set(re.findall(r"(?<!\*)\*([^*\n]+)\*(?!\*)", _RUNBOOK.read_text("utf-8")))
    assert named
    for name in named:
        assert any(title.startswith(name) for title in titles), name


def test_each_alert_has_a_story_in_which_it_fires_and_in_which_it_does_not() -> None:
    """Every alert fires at some time of a test scenario, and does not fire at an earlier time of it."""
    shown: set[str] = set()
    for file in TESTS:
        for story in yaml.safe_load(file.read_text("utf-8"))["tests"]:
            firing = [_alerts(test["exp_samples"]) for test in story["promql_expr_test"]]
            assert all('alertstate="firing"' in test["expr"] for test in story["promql_expr_test"])
            shown |= {
                name for at, names in enumerate(firing) for name in names if any(name not in one for one in firing[:at])
            }
    assert shown == {rule.name for rule in _ALERTS}


def _alerts(samples: list[dict[str, str]]) -> set[str]:
    return {name for sample in samples for name in re.findall(r'alertname="(\w+)"', sample["labels"])}


def test_stories_evaluate_groups_in_their_order() -> None:
    """Recorded series must exist before alerts use them; promtool uses any order unless one is given."""
    groups = [group["name"] for file in reversed(RULES) for group in yaml.safe_load(file.read_text("utf-8"))["groups"]]
    assert [file.name for file in reversed(RULES)] == ["recording.yaml", "alerts.yaml"]
    for file in TESTS:
        assert yaml.safe_load(file.read_text("utf-8"))["group_eval_order"] == groups


def test_hurried_rules_have_shorter_times_and_the_same_thresholds() -> None:
    """Ranges, offsets and waiting times are divided; seconds as numbers in an expression are not."""
    rule = {"alert": "A", "expr": "max_over_time(m[1h30m] offset 1d) > 300 and m[5m:30s] < 2 * 3600", "for": "2m"}
    (group,) = with_times_shortened({"groups": [{"name": "g", "interval": "5m", "rules": [rule]}]}, 60)["groups"]
    (changed,) = group["rules"]
    assert changed["expr"] == "max_over_time(m[90000ms] offset 1440000ms) > 300 and m[5000ms:500ms] < 2 * 3600"
    assert changed["for"] == "2000ms"
    assert "interval" not in group


def test_config_for_a_test_scrapes_its_targets_alone(tmp_path: Path) -> None:
    """Targets and intervals differ; jobs and rules are those of the shipped configuration."""
    written = yaml.safe_load(write_config(tmp_path, ["127.0.0.1:1"], interval=0.5).read_text("utf-8"))
    shipped = yaml.safe_load(CONFIG.read_text("utf-8"))
    assert [job["job_name"] for job in written["scrape_configs"]] == [
        job["job_name"] for job in shipped["scrape_configs"]
    ]
    assert [job["static_configs"] for job in written["scrape_configs"]] == [[{"targets": ["127.0.0.1:1"]}]]
    assert all(key in {"job_name", "static_configs"} for job in written["scrape_configs"] for key in job)
    assert written["global"]["scrape_interval"] == "500ms"
    assert sorted(file.name for file in (tmp_path / "rules").iterdir()) == sorted(file.name for file in RULES)


def _sections() -> dict[str, str]:
    parts = _RUNBOOK.read_text("utf-8").split("\n## ")[1:]
    return {name: text for name, _, text in (part.partition("\n") for part in parts)}
