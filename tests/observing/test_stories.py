"""Alerts in stories, run with Prometheus' own rule tests, and whether Prometheus accepts rules and configuration."""

import subprocess
from pathlib import Path

import pytest
import yaml

from deploy.prometheus.ruleset import CONFIG, RULES, TESTS, seconds_of
from tests.prometheus import program


def _promtool(*arguments: str | Path) -> str:
    """Run promtool and return its output.

    Raises:
        AssertionError: it finds a fault.
    """
    done = subprocess.run(
        [program("promtool"), *arguments], capture_output=True, text=True, check=False, cwd=CONFIG.parent
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_rules_are_valid() -> None:
    """Every expression and every template of an annotation parses."""
    assert "SUCCESS" in _promtool("check", "rules", "--lint=all", "--lint-fatal", *RULES)


def test_configuration_is_valid() -> None:
    """Prometheus accepts the configuration, and finds the rules that it names."""
    assert f"SUCCESS: {len(RULES)} rule files found" in _promtool("check", "config", "--lint-fatal", CONFIG)


def test_no_rule_is_evaluated_so_rarely_that_its_series_has_gaps() -> None:
    """Prometheus sees a sample for five minutes: one evaluation that is late or missing must not reset an alert."""
    groups = [group for file in RULES for group in yaml.safe_load(file.read_text(encoding="utf-8"))["groups"]]
    intervals = {group["name"]: seconds_of(group["interval"]) for group in groups if "interval" in group}
    assert {name for name, seconds in intervals.items() if seconds > 300 / 2} == set()


@pytest.mark.timeout(900)  # a minute of work, several where others want the processors too
@pytest.mark.parametrize("stories", TESTS, ids=lambda file: file.stem)
def test_alerts_in_stories(stories: Path) -> None:
    """At each point of each story, exactly the expected alerts fire."""
    assert "SUCCESS" in _promtool("test", "rules", stories)
