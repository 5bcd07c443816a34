"""`stream-dedup plan`: settings ready to paste, JSON, and exit codes."""

import json
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom
from typer.testing import CliRunner, Result

from stream_dedup.cli.main import app
from stream_dedup.cli.plan import _model
from stream_dedup.cli.terminal import out
from stream_dedup.planner import STRANGERS, FlipMixture, Model, Sample, Shape, Traffic, copies_of
from stream_dedup.planner.expect import expectation_without_tables
from stream_dedup.planner.sample import Copies
from stream_dedup.rendering.plan import distances_shown, plan_fields, settings_toml
from stream_dedup.settings import Settings, load_settings

pytestmark = pytest.mark.usefixtures("wide_terminal")


def _plan(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["plan", *arguments])


@pytest.fixture(autouse=True)
def _few_prefixes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search only keys of 20 bits."""
    monkeypatch.setattr("stream_dedup.planner.search._PREFIX_BITS", (20,))


def test_toml_is_taken_by_the_settings(tmp_path: Path) -> None:
    """The printed TOML loads as settings, and has the planned values."""
    path = tmp_path / "stream-dedup.toml"
    path.write_text(settings_toml(Shape(6, 22, 96, 14)))
    simhash = load_settings(path).simhash
    assert (simhash.tables, simhash.prefix_bits, simhash.probes, simhash.max_distance) == (6, 22, 96, 14)


def test_plan_prints_settings_and_what_to_expect() -> None:
    """The settings come first, as TOML, then a table comparing them with the current settings."""
    result = _plan("--articles", "2.5e6", "--recall", "0.9")
    assert result.exit_code == 0
    head, _, rest = result.stdout.partition("expected")
    assert set(tomllib.loads(head)["simhash"]) == {"tables", "prefix_bits", "probes", "max_distance"}
    for wanted in ("recall of the tables", "keys looked up", "blocks read", "candidates", "filters", "on disk"):
        assert wanted in rest
    assert "current settings" in rest
    assert "2,062,500 entries at most, with 2,500,000 articles per window" in rest


def test_no_distance_is_promised_beyond_the_largest() -> None:
    """16 tables of 16 bits share a key up to distance 3, but nothing beyond the largest distance is found."""
    shape = ("--set", "simhash.tables=16", "--set", "simhash.prefix_bits=16", "--set", "simhash.max_distance=1")
    lines = _plan("--articles", "1M", "--recall", "0.5", *shape).stdout.splitlines()
    assert [line.split()[-2] for line in lines if "exact keys" in line] == ["1"]


def test_distances_are_lines_of_any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each assumption is one unwrapped line, however narrow the terminal, so that it can be searched and pasted."""
    monkeypatch.setattr(out, "width", 40)
    lines = _plan("--articles", "1e6", "--recall", "0.5").output.splitlines()
    told = [line for line in lines if line.startswith("Hamming distances")]
    assert len(told) == 2
    assert all(len(line) > 80 for line in told)


def test_json_says_the_same() -> None:
    """The plan reaches the recall, and the index holds one and a half windows of the indexed share."""
    result = _plan("--articles", "1_000_000", "--recall", "0.9", "--unique-share", "0.4", "--json")
    plan = json.loads(result.stdout)
    assert result.exit_code == 0
    assert plan["recall_reached"]
    assert plan["planned"]["recall"] >= 0.9
    assert plan["entries"] == 600_000
    assert plan["copies"]["mean"] == pytest.approx(7.0, rel=0.01)
    assert plan["copies"]["correlation"] == pytest.approx(0.0120, abs=1e-4)
    assert plan["strangers"]["mean"] == pytest.approx(32, rel=0.01)
    assert sum(plan["strangers"]["distances"]) == pytest.approx(1, abs=1e-6)
    # Of three copies, two are kept in reserve.
    assert (plan["indexed_share"], plan["reserve_share"]) == pytest.approx((0.4, 0.4))


def test_json_tells_what_a_sample_held() -> None:
    """The articles read, those that are indexed, those that have a copy, and how far these copies are."""
    fingerprints = np.array([0b0000, 0b0001, 0b1111], np.uint64)
    copies = Copies(fingerprints[:2], np.array([0b0011, 0b0000], np.uint64), np.zeros((2, 64), np.int64))
    model = Model(copies_of(0.8), STRANGERS, Traffic(1e6, 0.4), Settings())
    sample = Sample(100, 0.6, 0.3, fingerprints, copies)
    told = plan_fields(None, expectation_without_tables(model), model, sample, kept=False)
    assert (told["recall_reached"], told["toml"], told["planned"]) == (False, None, None)
    assert told["sample"] == {"articles": 100, "indexed": 3, "copies": 2, "copy_distances": [0, 1, 1, *[0] * 62]}


def test_distances_are_told_by_quantiles() -> None:
    """With one flip probability, the distances are binomial: a line for copies, and one for unrelated articles."""
    model = Model(FlipMixture((0.1,), (1.0,)), FlipMixture((0.5,), (1.0,)), Traffic(1e6, 0.4), Settings())
    quantiles = [
        ", ".join(f"{100 * share:g}% within {binom.ppf(share, 64, flip):.0f}" for share in (1e-4, 0.01, 0.5, 0.9, 0.99))
        for flip in (0.1, 0.5)
    ]
    assert distances_shown(model).plain.splitlines() == [
        f"Hamming distances of copies: {quantiles[0]}",
        f"Hamming distances of unrelated articles: {quantiles[1]}",
    ]


def test_settings_of_now_are_those_that_are_set() -> None:
    """The plan is compared with the effective settings."""
    result = _plan("--articles", "1M", "--recall", "0.5", "--set", "simhash.tables=3", "--json")
    assert json.loads(result.stdout)["now"]["shape"]["tables"] == 3


def test_tables_that_are_off_find_and_take_nothing() -> None:
    """The table shows "off" for the current tables, and the plan enables them; otherwise `enabled` is not mentioned."""
    arguments = ("--articles", "1M", "--recall", "0.5", "--set", "simhash.enabled=false")
    plan = json.loads(_plan(*arguments, "--json").stdout)
    on = json.loads(_plan(*arguments[:-2], "--json").stdout)
    assert (plan["now"]["recall"], plan["now"]["keys"], plan["now"]["space"]["tables"]) == (0, 0, 0)
    assert plan["now"]["space"]["disk"] == pytest.approx(on["now"]["space"]["disk"] - on["now"]["space"]["tables"])
    assert tomllib.loads(plan["toml"])["simhash"] == tomllib.loads(on["toml"])["simhash"] | {"enabled": True}
    (shown,) = (line for line in _plan(*arguments).stdout.splitlines() if "prefix bits" in line)
    assert shown.split()[-2] == "off"


def test_a_recall_out_of_reach_fails_with_the_best() -> None:
    """Exit code 1, with one line that gives the best reachable recall."""
    result = _plan("--articles", "50M", "--recall", "0.9999", "--similarity", "0.5", "--json")
    assert result.exit_code == 1
    plan = json.loads(result.stdout)
    assert not plan["recall_reached"]
    assert plan["copies"]["mean"] == pytest.approx(13.51, rel=0.01)
    assert "cannot be reached: the best of all settings is 0." in result.stderr


def test_limits_that_nothing_keeps_fail() -> None:
    """A gigabyte of disk cannot hold 50 million articles."""
    result = _plan("--articles", "50M", "--recall", "0.9", "--disk", "1G")
    assert result.exit_code == 1
    assert "no settings at all stay within them" in result.stderr


def test_memory_is_not_limited_by_the_disk() -> None:
    """An index of 50 million articles fits in 10 GB of memory, but takes more on disk."""
    result = _plan("--articles", "50M", "--recall", "0.5", "--memory", "10G", "--json")
    space = json.loads(result.stdout)["planned"]["space"]
    assert space["memory"] <= 10e9 < space["disk"]


def test_the_most_articles_are_planned_in_seconds() -> None:
    """A trillion articles take 286,000 runs, which are counted by size and not one by one."""
    begun = time.process_time()
    result = _plan("--articles", "1T", "--recall", "0.9", "--unique-share", "1", "--json")
    assert time.process_time() - begun < 30
    assert json.loads(result.stdout)["entries"] == 1.5e12


def test_share_of_unique_articles_overrides_that_of_a_sample() -> None:
    """Of fewer copies, fewer are kept in reserve; without any, none: no more entries than articles."""
    nothing = np.empty(0, np.uint64)
    measured = Sample(100, 0.6, 0.3, nothing, Copies(nothing, nothing, np.empty((0, 64), np.int64)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sample, "copy_mixture", lambda _: copies_of(0.8))
        patch.setattr(Sample, "stranger_mixture", lambda _: STRANGERS)
        shares = [
            _model(1e6, 0.8, share, measured, Settings()).traffic.reserve_share for share in (None, 0.6, 0.8, 1.0)
        ]
    assert shares == pytest.approx([0.3, 0.3, 0.15, 0.0])


def test_a_sample_is_measured_as_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the given similarity, number of articles and names of fields."""
    asked = []

    def measured(path: Path, settings: Settings, similarity: float, most: int) -> None:
        asked.append((path, settings.input.fields.body, similarity, most))

    monkeypatch.setattr("stream_dedup.planner.measured_sample", measured)
    sample = ("--sample", "own.jsonl", "--sample-articles", "500", "-s", "input.fields.body=content")
    assert _plan("--articles", "1M", "--recall", "0.5", "--similarity", "0.6", *sample).exit_code == 0
    assert asked == [(Path("own.jsonl"), "content", 0.6, 500)]


def test_a_sample_that_is_missing_is_named_once() -> None:
    """Exit code 2, with one line that gives the path and the fault."""
    result = _plan("--articles", "1M", "--recall", "0.9", "--sample", "nowhere.jsonl")
    assert (result.exit_code, result.stderr) == (2, "error: nowhere.jsonl: there is no such file\n")


def test_a_sample_of_copies_of_one_article_is_named(tmp_path: Path) -> None:
    """Exit code 2, as for a sample that is too small: there are no unrelated articles to measure."""
    path = tmp_path / "same.jsonl"
    body = "".join(f"第{number}句话说的是同一件事情。" for number in range(40))
    path.write_text("".join(json.dumps({"id": number, "body": body}) + "\n" for number in range(100)), "utf-8")
    result = _plan("--articles", "1M", "--recall", "0.9", "--sample", str(path))
    told = f"error: {path}: no two of 100 articles are unrelated: a sample needs unrelated ones\n"
    assert (result.exit_code, result.stderr) == (2, told)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--articles", "many", "--recall", "0.9"),
        ("--articles", "1e30", "--recall", "0.9"),
        ("--articles", "1M", "--recall", "1.5"),
        ("--articles", "1M", "--recall", "0.9", "--similarity", "0.2"),
        ("--articles", "1M"),
    ],
)
def test_arguments_out_of_bounds_are_a_usage_error(arguments: tuple[str, ...]) -> None:
    """Exit code 2, as for all commands."""
    assert _plan(*arguments).exit_code == 2


@pytest.mark.parametrize("option", ["--articles", "--memory", "--disk"])
def test_what_is_no_number_is_told_in_our_words(option: str) -> None:
    """The message says what to write, without the name of a class."""
    told = _plan("--articles", "1M", "--recall", "0.9", option, "many").stderr
    assert f"Invalid value for '{option}': 'many' is not a positive number: write" in told
