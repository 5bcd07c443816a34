"""`tail` and `explain --id` beside a running service.

They read what it has published and consumed from the topics, like any other reader; it does not know about them.
"""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from stream_dedup.cli.main import app
from tests.stream.arguments import REPOSITORY, clean_environment
from tests.stream.messages import Incoming, article, produce
from tests.stream.records import collect
from tests.stream.service import Service
from tests.stream.topics import Topics, fresh_topics
from tests.stream.waiting import wait_until

_STORY = (
    "石桥镇的夜市昨晚重新开张，三十多个摊位沿河一字排开，附近的居民和游客都来捧场。镇里今年把摊位费由按月收改成按天收，"
    "雨天不来不收钱。卖藕片的郑巧云说，算下来比去年同期少交了四千多元，她用这笔钱换了一台静音排烟机。"
)
_OTHER = (
    "气象台预计，明天白天晴间多云，最高气温二十六度，夜里转阴，北风三到四级，出门请带一件外套，傍晚收好晾晒的衣物。"
)
_COPY = _STORY.replace("静音排烟机", "二手冰柜")


@dataclass(frozen=True, slots=True)
class _Running:
    """A service that has answered four messages."""

    service: Service
    topics: Topics
    bootstrap: str

    def command(self, name: str, *arguments: str) -> list[str]:
        host, port = self.service.address
        file = self.service.directory / "stream-dedup.toml"
        flags = ["-c", str(file), "-s", f"http.host={host}", "-s", f"http.port={port}"]
        return [name, *arguments, *flags]

    def run(self, name: str, *arguments: str) -> Result:
        """Run a command that exits by itself, in this process."""
        return CliRunner().invoke(app, self.command(name, *arguments), env={"COLUMNS": "160"})

    def ask(self, name: str, *arguments: str) -> dict[str, Any]:
        """Return the answer of a command as JSON."""
        done = self.run(name, *arguments, "--json")
        assert done.exit_code == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def tail(self, *arguments: str) -> list[dict[str, Any]]:
        """Return the decisions that the topics hold."""
        done = self.run("tail", "--no-follow", "--json", *arguments)
        assert done.exit_code == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def start_tail(self, *arguments: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "stream_dedup", *self.command("tail", *arguments)],
            cwd=REPOSITORY,
            env=clean_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.fixture(scope="module")
def running(bootstrap: str, compiled: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Running]:  # noqa: ARG001  # compiled: loops are compiled once
    """A service that has judged a story, a copy of it and another story, and refused a message that is no article."""
    topics = fresh_topics(bootstrap, partitions=2)
    directory: Path = tmp_path_factory.mktemp("service")
    with Service(directory, bootstrap, topics) as service:
        service.wait_ready()
        produce(
            bootstrap,
            topics.input,
            [
                article("story", _STORY, title="夜市重新开张", source="石桥晚报"),
                article("copy", _COPY, source="江畔快讯"),
                article("weather", _OTHER, source="气象台"),
                Incoming(b"[]", b"broken"),
            ],
        )
        collect(bootstrap, topics, 4, service)
        yield _Running(service, topics, bootstrap)


def _told(decisions: list[dict[str, Any]]) -> set[tuple[str, str | None, str | None]]:
    return {(one["decision"], one["relation"], one["id"]) for one in decisions}


def test_tail_tells_every_decision(running: _Running) -> None:
    """From the beginning, each message of the three topics is a line with the decision and the input position."""
    decisions = running.tail("--from-beginning")
    assert _told(decisions) == {
        ("unique", None, "story"),
        ("duplicate", "near", "copy"),
        ("unique", None, "weather"),
        ("dead", None, "broken"),
    }
    copy = next(one for one in decisions if one["id"] == "copy")
    assert (copy["duplicate_of"], copy["source"]) == ("story", "江畔快讯")
    assert copy["message"] == {"topic": running.topics.input, "partition": 0, "offset": 1}
    story = next(one for one in decisions if one["id"] == "story")
    assert (story["title"], story["source"]) == ("夜市重新开张", "石桥晚报")


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        (("--relation", "near"), {"copy"}),
        (("--decision", "dead", "--decision", "unique"), {"story", "weather", "broken"}),
        (("--source", "气象台"), {"weather"}),
        (("--id", "story"), {"story", "copy"}),
        (("--id", "story", "--decision", "unique"), {"story"}),
    ],
)
def test_tail_tells_what_is_asked_for(filters: tuple[str, ...], ids: set[str], running: _Running) -> None:
    """Filters of one kind are alternatives, different kinds must all match; an id includes its copies."""
    assert {one["id"] for one in running.tail("--last", "100", *filters)} == ids


def test_tail_follows_until_ctrl_c(running: _Running) -> None:
    """A later decision appears as a line without colours, and Ctrl-C ends it without a message."""
    with running.start_tail("--last", "4") as process:
        assert process.stdout is not None
        assert {process.stdout.readline().split()[1] for _ in range(4)} == {"unique", "near", "dead"}
        produce(running.bootstrap, running.topics.input, [article("late", _STORY, source="迟到的报")])
        line = process.stdout.readline()
        assert line.split()[1:4] == ["exact", "late", "迟到的报"]
        assert "\x1b" not in line
        process.send_signal(signal.SIGINT)
        rest, complaints = process.communicate(timeout=60)
    assert (process.returncode, rest, complaints) == (0, "", "")


def test_tail_ends_with_its_reader(running: _Running) -> None:
    """If the reader closes the pipe, as `head` does, it ends silently with the exit code of SIGPIPE."""
    with running.start_tail("--from-beginning", "--json") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        json.loads(process.stdout.readline())
        process.stdout.close()
        produce(running.bootstrap, running.topics.input, [article(f"n{number}", _OTHER) for number in range(3)])
        wait_until(lambda: process.poll() is not None, "the end of tail")
        assert (process.returncode, process.stderr.read()) == (128 + signal.SIGPIPE, "")


def test_tail_of_topics_that_are_missing_says_so(running: _Running) -> None:
    """The missing topic is named, with the settings that name it."""
    done = running.run("tail", "-s", "output.dead=nowhere.at.all")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "no topic nowhere.at.all" in done.stderr


def test_reason_is_told_with_the_texts_out_of_the_topic(running: _Running) -> None:
    """`explain --id` reads both texts from their messages, and reports the link as it was decided."""
    reason = running.ask("explain", "--id", "copy")
    assert (reason["first"]["body"], reason["second"]["body"]) == (_COPY, _STORY)
    assert reason["first"]["message"] == {"topic": running.topics.input, "partition": 0, "offset": 1}
    assert (reason["decided"]["matched"], reason["decided"]["relation"]) == ("story", "near")
    other = running.ask("explain", "--id", "weather", "--other", "story")
    assert (other["decided"], other["relation"]) == (None, None)
    # Its link is to another article than the one it is compared with here.
    assert running.ask("explain", "--id", "copy", "--other", "weather")["decided"] is None


def test_reason_is_shown_with_differences(running: _Running) -> None:
    """For people, it shows the positions of both messages, the link, and the swapped words."""
    done = running.run("explain", "--id", "copy")
    assert done.exit_code == 0, done.stderr
    assert f"{running.topics.input}, partition 0, offset 1" in done.stdout
    # Lines are wrapped at the width of the terminal.
    assert "[-二手冰柜-]{+静音排烟机+}" in done.stdout.replace("\n", "")


def test_status_is_that_of_the_running_service(running: _Running) -> None:
    """Beside a running service, its own figures are shown too: decisions by relation, and the backlog."""
    status: dict[str, Any] = {}

    def nothing_waits() -> bool:
        # The lag is updated once a second, and a service that takes as long for an answer is not there.
        status.update(running.ask("status"))
        return bool(status["consumer_lag"] == 0)

    wait_until(nothing_waits, "nothing waits")
    assert status["running"]
    assert status["decisions"]["near"] == 1
    assert status["articles_judged"] >= 3
