"""The benchmark's arithmetic and its articles, on cases worked by hand."""

import gzip
from itertools import islice
from pathlib import Path

import orjson
import pytest

from stream_dedup.settings import load_settings
from tests.benchmarks.throughput.articles import decoded, endless, read_articles, with_field, write_articles
from tests.benchmarks.throughput.figures import Ratio, latency_of, steady_rate
from tests.benchmarks.throughput.references import REFERENCES, grams_of
from tests.benchmarks.throughput.rounds import in_turns


def _batches(count: int, size: int, period_ms: int) -> list[int]:
    """Return the times of outputs that arrive every `period_ms` in batches of `size`, each within 2 ms."""
    return [period_ms * batch + 2 * place // size for batch in range(count) for place in range(size)]


@pytest.mark.parametrize(("count", "size", "period_ms"), [(20, 500, 250), (9, 2_048, 1_024)])
def test_the_steady_rate_of_batches_is_their_size_over_their_period(count: int, size: int, period_ms: int) -> None:
    """500 outputs every 250 ms are 2,000 a second in any order, although the time for the first batch is unknown."""
    stamps = _batches(count, size, period_ms)
    assert steady_rate(stamps) == pytest.approx(2_000, rel=1e-3)
    assert steady_rate(stamps[::-1]) == pytest.approx(2_000, rel=1e-3)


def test_a_slow_start_does_not_count() -> None:
    """A first batch 10 s before the others does not change the rate."""
    stamps = _batches(40, 500, 250)
    late = [stamp - 10_000 if place < 500 else stamp for place, stamp in enumerate(stamps)]
    assert steady_rate(late) == pytest.approx(2_000, rel=1e-3)


def test_two_outputs_a_second_apart_have_the_rate_of_one_a_second() -> None:
    """This is the minimum: one output after the first, within one second."""
    assert steady_rate([5_000, 4_000]) == 1.0


@pytest.mark.parametrize("stamps", [[], [7], [7, 7, 7]])
def test_outputs_of_one_moment_have_no_rate(stamps: list[int]) -> None:
    """Without two different times there is nothing to divide by, and the error says so."""
    with pytest.raises(ValueError, match=f"{len(stamps)} outputs with the same timestamp"):
        steady_rate(stamps)


def test_a_ratio_is_that_of_the_medians() -> None:
    """The medians of 10, 30, 20 and of 8, 4, 5 are 20 and 5, so the ratio is 4."""
    assert Ratio("a", "b").value({"a": [10, 30, 20], "b": [8, 4, 5]}) == 4.0


@pytest.mark.parametrize("rates", [{"a": [1.0]}, {"b": [1.0]}, {"a": [1.0], "b": []}])
def test_what_was_not_timed_has_no_ratio(rates: dict[str, list[float]]) -> None:
    """There is no ratio to a reference that is not installed."""
    assert Ratio("a", "b", 1.0).value(rates) is None


def test_percentiles_of_latencies() -> None:
    """Of 1 to 101 ms, the median is 51 and the 99th percentile 100."""
    latency = latency_of(500.0, [float(ms) for ms in range(101, 0, -1)])
    assert (latency.articles, latency.median_ms, latency.p99_ms) == (101, 51.0, 100.0)


def test_rounds_take_turns_and_turn_round() -> None:
    """References and services alternate while there are both; the second round is in reverse order."""
    assert list(in_turns("abc", "XY", 0)) == ["a", "X", "b", "Y", "c"]
    assert list(in_turns("abc", "XY", 1)) == ["c", "Y", "b", "X", "a"]
    assert list(in_turns("", "XY", 0)) == ["X", "Y"]


def test_articles_are_read_from_plain_and_packed_files(tmp_path: Path) -> None:
    """Each line is an article, with any line ending; blank lines are skipped."""
    lines = b'{"body": "a"}\r\n\n{"body": "b"}\n'
    (tmp_path / "plain.jsonl").write_bytes(lines)
    (tmp_path / "packed.jsonl.gz").write_bytes(gzip.compress(lines))
    for name in ("plain.jsonl", "packed.jsonl.gz"):
        assert read_articles(tmp_path / name) == [b'{"body": "a"}', b'{"body": "b"}']


def test_written_articles_are_read_back(tmp_path: Path) -> None:
    """Articles are read back as written."""
    articles = [b'{"body": "a"}', b'{"body": "b"}']
    assert read_articles(write_articles(tmp_path / "all.jsonl", articles)) == articles


def test_references_see_what_the_service_judges() -> None:
    """Field names are those of the settings; dead letters and withdrawals are left out."""
    values = [{"text": "一则"}, {"text": ""}, {"id": "x", "deleted": True}, {"body": "别的"}]
    settings = load_settings(flags=["input.fields.body=text"]).input
    assert [article.body for article in decoded(map(orjson.dumps, values), settings)] == ["一则"]


def test_a_field_is_replaced_at_its_path() -> None:
    """Enclosing objects are kept, or created if missing; everything else is unchanged."""
    article = orjson.dumps({"meta": {"id": "old", "lang": "zh"}, "body": "b"})
    assert orjson.loads(with_field(article, "meta.id", "new")) == {"meta": {"id": "new", "lang": "zh"}, "body": "b"}
    assert orjson.loads(with_field(b'{"body":"b"}', "meta.id", "new")) == {"meta": {"id": "new"}, "body": "b"}


def test_endless_articles_repeat_in_other_scopes() -> None:
    """The first time they are as they were given; after that, each turn is a scope of its own."""
    found = [orjson.loads(value) for value in islice(endless([b'{"body":"a"}', b'{"body":"b"}'], "meta.scope"), 5)]
    assert [article["body"] for article in found] == ["a", "b", "a", "b", "a"]
    assert [article.get("meta") for article in found] == [None, None, {"scope": "1"}, {"scope": "1"}, {"scope": "2"}]


def test_grams_of_a_text() -> None:
    """Each n-gram occurs once; a text no longer than one n-gram is its only one."""
    assert grams_of("abcabc", 3) == {"abc", "bca", "cab"}
    assert grams_of("ab", 3) == {"ab"}


@pytest.mark.parametrize("name", ["datasketch", "gaoya", "engine"])
def test_each_index_finds_the_one_copy(name: str) -> None:
    """Of three articles, the second repeats the first: each index reports exactly one copy."""
    story = (
        "图书馆昨日向市民开放，首日接待读者一万二千人次。馆内设有二百个自习座位和一间儿童阅览室，周末延长到晚上九点。"
    )
    other = "今夜有雷阵雨，气温下降六到八度，请注意添衣。气象台说明天上午雨势减弱，午后转多云，山区注意防范落石和积水。"
    settings = load_settings()
    values = [orjson.dumps({"id": str(place), "body": body}) for place, body in enumerate([story, story, other])]
    loop = next(one.loop for one in REFERENCES if one.name == name)
    assert loop is not None
    assert loop(decoded(values, settings.input), settings) == 1
