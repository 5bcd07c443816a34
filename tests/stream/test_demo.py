"""What `make demo` promises: it shows the whole stream, its counts agree, and it leaves nothing behind.

Runs it as a user does, on the broker of the test session; knows nothing of how its parts work together.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from http.client import HTTPConnection
from io import StringIO
from pathlib import Path

import psutil
import pytest
from confluent_kafka.admin import AdminClient
from rich.cells import cell_len
from rich.console import Console

from deploy.demo import clusters
from deploy.demo.correction import Correction
from deploy.demo.detection import Detection
from deploy.demo.measures import Measures
from deploy.demo.outcome import Outcome
from deploy.demo.report import print_report, shortened
from deploy.demo.samples import Sample, sample_stream
from deploy.demo.stream import StreamFailedError
from tests.stream.topics import fresh_topics
from tests.stream.waiting import wait_until

_ROOT = Path(__file__).parents[2]
_SECONDS = 200
_LINK = (
    b'{"id": "copy", "duplicate_of": "%b", "relation": "near", "jaccard": 0.9, "containment": 1.0, "hamming": 2,'
    b' "candidate_source": "landmark", "offset": %d}'
)


@dataclass(frozen=True, slots=True)
class _Run:
    status: int
    output: str
    folder: Path
    groups_before: list[str] = field(default_factory=list)


def _start(bootstrap: str, folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start the demonstration with its own folder for whatever it leaves behind.

    The user's environment has a setting that the service would refuse: the demonstration must ignore it.
    """
    own = {"KAFKA_BOOTSTRAP": bootstrap, "TMPDIR": str(folder), "STREAM_DEDUP_COMMIT__ARTICLES": "0"}
    return subprocess.Popen(
        [sys.executable, "-m", "deploy.demo", *arguments],
        cwd=_ROOT,
        env={**os.environ, **own},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _finish(process: subprocess.Popen[str], folder: Path) -> _Run:
    output, _ = process.communicate(timeout=_SECONDS)
    return _Run(process.returncode, output, folder)


def _read_until(process: subprocess.Popen[str], text: str) -> str:
    """Read the output up to a line that contains the text, and return that line."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if text in line:
            return line
    raise AssertionError(f"{text!r} was never printed:\n{''.join(lines)}")


def _left_behind(bootstrap: str, folder: Path) -> list[str]:
    """Return the processes, files and topics that a demonstration has left, once the broker knows what is deleted."""
    with suppress(AssertionError):
        wait_until(lambda: not _found(bootstrap, folder), "nothing is left")
    return _found(bootstrap, folder)


def _found(bootstrap: str, folder: Path) -> list[str]:
    processes = [line for line in map(_command_line, psutil.process_iter()) if str(folder) in line]
    topics = AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=60).topics
    return [*processes, *(path.name for path in folder.iterdir()), *(name for name in topics if "demo-" in name)]


def _groups_left(bootstrap: str) -> list[str]:
    admin = AdminClient({"bootstrap.servers": bootstrap})  # no answer comes once the client is freed
    groups = admin.list_consumer_groups().result(60).valid
    return [group.group_id for group in groups or () if "demo-" in group.group_id]


def _command_line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


@pytest.fixture(scope="module")
def demo(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> _Run:
    """One run from beginning to end."""
    folder, groups = tmp_path_factory.mktemp("demo"), _groups_left(bootstrap)
    return replace(_finish(_start(bootstrap, folder), folder), groups_before=groups)


@pytest.fixture
def folder(bootstrap: str, tmp_path: Path) -> Iterator[Path]:
    """A folder for a demonstration that must leave nothing behind."""
    yield tmp_path
    assert _left_behind(bootstrap, tmp_path) == []


def test_counts_agree_and_each_message_comes_out_once(demo: _Run) -> None:
    """The exit code is 0, and what went in is the sum of what came out."""
    assert demo.status == 0, demo.output
    line = re.search(r"(\d+) messages in = (\d+) unique \+ (\d+) links \+ (\d+) dead letters", demo.output)
    assert line is not None
    sent, *came = map(int, line.groups())
    assert sent == sum(came) == len(sample_stream())
    assert came[-1] == sum(sample.dead_reason is not None for sample in sample_stream())
    assert "each came out, none twice" in demo.output
    assert "the counts agree" in demo.output


def test_every_broken_message_is_listed_with_its_reason(demo: _Run) -> None:
    """Each of the twelve has a line with its key and its labelled reason."""
    broken = [sample for sample in sample_stream() if sample.dead_reason]
    assert len(broken) == 12
    for sample in broken:
        key = (sample.key or b"").decode()
        assert re.search(rf"^{key} +{sample.dead_reason} ", demo.output, re.MULTILINE), key


def test_every_kind_of_repost_is_shown_with_its_recall(demo: _Run) -> None:
    """Each kind has a line with how many were found, overall at least nine tenths; no link is wrong."""
    for kind in {sample.kind for sample in sample_stream() if sample.repost_of}:
        assert re.search(rf"^{kind.replace('_', ' ')} +\d+/\d+ ", demo.output, re.MULTILINE), kind
    found = re.search(r"^reposts found +(\d+)/(\d+)", demo.output, re.MULTILINE)
    assert found is not None
    assert int(found[1]) >= 0.9 * int(found[2])
    assert re.search(r"^wrong links +0 ", demo.output, re.MULTILINE)


def test_metrics_are_those_of_the_run(demo: _Run) -> None:
    """The metrics shown exist and count what came out."""
    line = re.search(r"(\d+) unique \+ (\d+) links", demo.output)
    assert line is not None
    assert f"duplicate {line[2]}, unique {line[1]}" in demo.output
    for name in ("candidates_total", "candidates_confirmed_total", "commit_messages", "decision_seconds"):
        assert re.search(rf"^stream_dedup_{name} .*[1-9]", demo.output, re.MULTILINE), name
    assert re.search(r"^stream_dedup_transactions_total +committed [1-9]", demo.output, re.MULTILINE)
    assert re.search(r"^stream_dedup_stage_seconds_total .*transaction \d", demo.output, re.MULTILINE)
    assert "nan" not in demo.output


def test_most_copied_articles_are_shown_and_hold_all_copies(demo: _Run) -> None:
    """The five largest clusters are listed by number of copies; the copies of all clusters add up to the links.

    Redeliveries do not count as copies.
    """
    section = demo.output.partition("The most copied articles")[2].partition("A withdrawal")[0]
    shown = [int(copies) for copies in re.findall(r"^ +(\d+) +\d+ \S", section, re.MULTILINE)]
    assert len(shown) == 5
    assert shown == sorted(shown, reverse=True)
    total = re.search(r"(\d+) clusters with (\d+) copies in all", section)
    links = re.search(r"^links +(\d+) .*redelivery (\d+)", demo.output, re.MULTILINE)
    assert total is not None
    assert links is not None
    assert int(total[2]) == int(links[1]) - int(links[2])


def test_withdrawal_hands_the_cluster_over(demo: _Run) -> None:
    """The most copied article is withdrawn; a later copy of it links to its successor."""
    section = demo.output.partition("A withdrawal:")[2].partition("Dead letters")[0]
    withdrawn = re.search(r"^withdrawn +(\S+)", section, re.MULTILINE)
    successor = re.search(r"^its cluster is now called +(\S+)", section, re.MULTILINE)
    late = re.search(r"^a later copy +(\S+) +\S+, a duplicate of (\S+?)…?\s*$", section, re.MULTILINE)
    assert withdrawn is not None
    assert successor is not None
    assert late is not None
    assert late[1] == f"{withdrawn[1]}.late"
    assert successor[1].startswith(f"{withdrawn[1]}.")
    assert successor[1].startswith(late[2])


def test_output_fits_into_100_columns(demo: _Run) -> None:
    """No line is wider than 100 cells, Chinese characters counted as two."""
    assert max(cell_len(line) for line in demo.output.splitlines()) <= 100


def test_nothing_is_left_behind(demo: _Run, bootstrap: str) -> None:
    """No process, no temporary file, no topic and no consumer group outlives the demonstration."""
    assert _left_behind(bootstrap, demo.folder) == []
    assert _groups_left(bootstrap) == demo.groups_before


def test_stay_keeps_the_service_up_until_sigterm(bootstrap: str, folder: Path) -> None:
    """With --stay, metrics and page are served on after the report; SIGTERM ends everything with exit code 0."""
    process = _start(bootstrap, folder, "--stay", "--seed", "21")
    address = re.search(r"//(\S+)/readyz", _read_until(process, "service is ready"))
    page = re.search(r"//(\S+)/", _read_until(process, "page  "))
    _read_until(process, "Press Ctrl-C to end it")
    assert address is not None
    assert page is not None
    assert b"stream_dedup_articles_total" in _get(address[1], "/metrics")
    assert b"/page.js" in _get(page[1], "/")
    # The API waits for its service for a second at most.
    wait_until(lambda: b'"running":true' in _get(page[1], "/v1/status"), "the service answers the API")
    process.send_signal(signal.SIGTERM)
    run = _finish(process, folder)
    assert run.status == 0, run.output


def _get(place: str, path: str) -> bytes:
    with closing(HTTPConnection(place, timeout=60)) as connection:
        connection.request("GET", path)
        return connection.getresponse().read()


@pytest.mark.parametrize("moment", ["Kafka answers", "service is ready"])
def test_ctrl_c_ends_it_at_any_moment(bootstrap: str, folder: Path, moment: str) -> None:
    """Ctrl-C, even pressed twice, ends it cleanly while the service starts or the stream flows."""
    process = _start(bootstrap, folder)
    _read_until(process, moment)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    run = _finish(process, folder)
    assert run.status == 128 + signal.SIGINT
    assert "Traceback" not in run.output


def test_service_that_dies_is_shown_with_its_log(bootstrap: str, folder: Path) -> None:
    """If the service is killed mid-stream, the demonstration ends with exit code 1 and shows the tail of its log."""
    process = _start(bootstrap, folder)
    _read_until(process, "service is ready")
    for child in psutil.Process(process.pid).children(recursive=True):
        if child.cmdline()[1:3] == ["-m", "stream_dedup"]:
            child.kill()
    run = _finish(process, folder)
    assert run.status == 1
    assert "the service ended with exit code 137" in run.output
    assert " partitions_assigned " in run.output


_SAMPLES = (
    Sample(b"first", b"1", "original", "first"),
    Sample(b"copy", b"2", "verbatim", "copy", repost_of="first"),
    Sample(b"other", b"3", "original", "other"),
)


def _outcome(duplicate_of: bytes) -> Outcome:
    outcome = Outcome(_SAMPLES)
    outcome.add_unique(b"first", b"1")
    outcome.add_link(_LINK % (duplicate_of, 1))
    outcome.add_unique(b"other", b"3")
    return outcome


def test_books_notice_what_is_missing_twice_or_from_nowhere() -> None:
    """The counts agree only if each message has come out exactly once and nothing else has."""
    assert not Outcome(_SAMPLES).complete
    assert _outcome(b"first").complete
    for extra in (b"1", b"2", b"from nowhere"):
        outcome = _outcome(b"first")
        outcome.add_unique(b"first", extra)
        assert not outcome.complete


def test_books_notice_dead_letters_that_no_label_expects() -> None:
    """They do not agree if a valid message is a dead letter, or a reason differs from the label."""
    broken = Sample(b"broken", b"[]", "broken", None, dead_reason="not_an_object")
    headers = {"stream_dedup.offset": b"0", "stream_dedup.exception": b"UndecodableError: an array: so"}
    for sample, reason, agrees in (
        (broken, b"not_an_object", True),
        (broken, b"too_large", False),
        (_SAMPLES[0], b"too_large", False),
    ):
        outcome = Outcome([sample])
        outcome.add_dead_letter({**headers, "stream_dedup.reason": reason})
        assert outcome.as_labelled is agrees
        assert outcome.dead[0].detail == "an array: so"


def test_link_to_another_story_is_wrong_and_no_recall() -> None:
    """A repost is found only if its link leads to the article of its label."""
    right, wrong = Detection(_outcome(b"first")), Detection(_outcome(b"other"))
    assert (right.found.right, right.found.total, right.wrong) == (1, 1, [])
    assert (wrong.found.right, wrong.found.total, wrong.wrong) == (0, 1, [1])


_SCRAPED = """\
# TYPE stream_dedup_articles counter
stream_dedup_articles_total{decision="unique"} 3
stream_dedup_articles_total{decision="duplicate"} 1
# TYPE stream_dedup_stage_seconds counter
stream_dedup_stage_seconds_total{stage="features"} 0.002
stream_dedup_stage_seconds_total{stage="write"} 0.006
# TYPE stream_dedup_decision_seconds histogram
stream_dedup_decision_seconds_bucket{le="0.1"} 50
stream_dedup_decision_seconds_bucket{le="0.3"} 100
stream_dedup_decision_seconds_bucket{le="+Inf"} 100
stream_dedup_decision_seconds_count 100
stream_dedup_decision_seconds_sum 10
"""


def test_numbers_are_shown_under_their_names() -> None:
    """Measures of a link, sizes of a cluster, and milliseconds per article and until it is decided."""
    first, copy = (f'{{"title": "{title}", "body": "正文"}}'.encode() for title in ("原文", "副本"))
    outcome = Outcome([replace(_SAMPLES[0], value=first), replace(_SAMPLES[1], value=copy)])
    outcome.add_unique(b"first", first)
    outcome.add_link(_LINK % (b"first", 1))
    cluster = clusters.Cluster("first", 4, [("石桥网", 3), ("晚报", 2)])
    console, link = Console(file=StringIO(), width=100), outcome.links[1]
    print_report(console, outcome, Detection(outcome), {"first": cluster}, Correction(link, link), Measures(_SCRAPED))
    assert isinstance(console.file, StringIO)
    lines = [" ".join(line.split()) for line in console.file.getvalue().splitlines()]
    assert {
        "verbatim 1/1 near 0.90 1.00 2 landmark 副本 原文",
        "4 2 原文 石桥网 3, 晚报 2",
        "1 clusters with 4 copies in all",
        "stream_dedup_articles_total unique 3, duplicate 1",
        "stream_dedup_stage_seconds_total 2.0 ms per article: write 1.50, features 0.50, ...",
        "stream_dedup_decision_seconds p50 100 ms, p99 296 ms, from message to committed decision",
    } <= set(lines)


def test_clusters_that_are_not_read_to_their_end_are_told(bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the broker is slow, the demonstration fails instead of showing only some of the clusters."""
    empty = fresh_topics(bootstrap).unique
    assert clusters.ClusterTopic(bootstrap, empty).read() == {}
    monkeypatch.setattr(clusters, "_READ_SECONDS", 0.0)
    with pytest.raises(StreamFailedError, match="the clusters could not be read to their end"):
        clusters.ClusterTopic(bootstrap, empty).read()


def test_quantile_is_read_as_prometheus_reads_it() -> None:
    """Within a bucket observations count as evenly spread; beyond the last bound, that bound is returned."""
    text = 'd_bucket{le="1"} 10\nd_bucket{le="2"} 20\nd_bucket{le="+Inf"} 40\nd_count 40\nd_sum 70\n'
    measures = Measures(f"# TYPE d histogram\n{text}")
    assert measures.quantile("d", 0.25) == pytest.approx(1.0)
    assert measures.quantile("d", 0.375) == pytest.approx(1.5)
    assert measures.quantile("d", 0.9) == pytest.approx(2.0)


def test_titles_are_shortened_by_their_width_on_the_terminal() -> None:
    """A Chinese character takes two cells, and the ellipsis follows it without a gap."""
    assert shortened("旱了五十天的村子", 16) == "旱了五十天的村子"
    assert shortened("旱了五十天的村子", 15) == "旱了五十天的村…"
    assert shortened("旱了五十天的村子", 14) == "旱了五十天的…"
