"""The rules and the configuration of this directory, as they are and as a test needs them.

Knows the files and their format; knows nothing of what a rule asks.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

DIRECTORY = Path(__file__).parent
CONFIG = DIRECTORY / "prometheus.yaml"
RULES = tuple(sorted((DIRECTORY / "rules").glob("*.yaml")))
TESTS = tuple(sorted((DIRECTORY / "tests").glob("*.yaml")))

Fields = dict[str, Any]
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_DURATION = re.compile(r"(\d+)(ms|[smhdw])")
# Where PromQL has durations: in ranges, and after `offset`. Plain numbers of seconds are left alone.
_IN_QUERIES = re.compile(r"(?<=[\[:])(?:\d+(?:ms|[smhdw]))+(?=[\]:])|(?<=\boffset )(?:\d+(?:ms|[smhdw]))+")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        name: of the alert, or of the recorded series.
        expression: PromQL.
        alert: whether it is an alert.
        annotations: of an alert.
        labels: those that it adds.
    """

    name: str
    expression: str
    alert: bool
    annotations: Mapping[str, str]
    labels: Mapping[str, str]


def all_rules() -> list[Rule]:
    """Return the rules of all files."""
    return [
        Rule(
            rule.get("alert") or rule["record"],
            rule["expr"],
            "alert" in rule,
            rule.get("annotations", {}),
            rule.get("labels", {}),
        )
        for file in RULES
        for rule in _rules(yaml.safe_load(file.read_text(encoding="utf-8")))
    ]


def with_times_shortened(rules: Fields, factor: float) -> Fields:
    """Return a file of rules with all times shortened: with a factor of 60, what takes a minute takes a second.

    Ranges, offsets and the `for` of alerts become shorter, thresholds do not. All rules are evaluated equally often.
    """
    for group in rules["groups"]:
        group.pop("interval", None)
    for rule in _rules(rules):
        rule["expr"] = _IN_QUERIES.sub(lambda found: _shorter(found[0], factor), rule["expr"])
        if "for" in rule:
            rule["for"] = _shorter(rule["for"], factor)
    return rules


def write_config(directory: Path, targets: Sequence[str], *, interval: float, factor: float = 1.0) -> Path:
    """Write the configuration into a directory, with other targets and times, and return the file's path.

    Args:
        directory: to write to; the rules are written to a subdirectory.
        targets: addresses of the service's processes; an empty list scrapes none.
        interval: seconds between scrapes, and between evaluations.
        factor: by which the times of all rules are shortened.
    """
    fields: Fields = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))
    fields["global"] = {
        "scrape_interval": _duration(interval),
        "scrape_timeout": _duration(interval),
        "evaluation_interval": _duration(interval),
    }
    for job in fields["scrape_configs"]:
        for name in [name for name in job if name.endswith("_sd_configs")]:
            del job[name]
        job["static_configs"] = [{"targets": list(targets)}]
    rules = directory / "rules"
    rules.mkdir(exist_ok=True)
    for file in RULES:
        changed = with_times_shortened(yaml.safe_load(file.read_text(encoding="utf-8")), factor)
        (rules / file.name).write_text(yaml.safe_dump(changed, sort_keys=False), encoding="utf-8")
    written = directory / CONFIG.name
    written.write_text(yaml.safe_dump(fields, sort_keys=False), encoding="utf-8")
    return written


def seconds_of(duration: str) -> float:
    """Return the seconds of a duration as Prometheus writes it, such as 1h30m."""
    return sum(int(number) * _SECONDS[unit] for number, unit in _DURATION.findall(duration))


def _rules(fields: Fields) -> Iterator[Fields]:
    for group in fields["groups"]:
        yield from group["rules"]


def _shorter(duration: str, factor: float) -> str:
    return _duration(seconds_of(duration) / factor)


def _duration(seconds: float) -> str:
    return f"{max(1, round(seconds * 1000))}ms"
