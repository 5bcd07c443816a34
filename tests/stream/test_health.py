"""Probes while a real service starts, restores, works and is stuck, and what the log says when it is stuck.

Knows paths, lines and signals; knows nothing of decisions.
"""

import os
import re
import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from deploy.demo.samples.corpus import base_texts
from tests.stream.messages import Incoming, article, produce
from tests.stream.records import collect
from tests.stream.service import Answer, Service
from tests.stream.topics import changelogs, delete_topic, fresh_topics
from tests.stream.waiting import wait_until

_PATIENCE = "http.stuck_seconds=3"
_STUCK_SECONDS = 8  # for which the loop is blocked
_HELD = " in _hold\n"  # as written by the timer that needs no GIL
_COUNT = 400
_RESTORING = re.compile(r"waiting for the changelog to be replayed: ([\d,]+) of ([\d,]+) records left, about \d+ \w+\n")


def _articles(count: int) -> list[Incoming]:
    texts = base_texts()
    return [article(f"n{n}", f"{texts[n % len(texts)].body} {n}") for n in range(count)]


# -------------------------------------------------------------------------------------------------- a stuck loop


@dataclass(frozen=True, slots=True)
class Stuck:
    """A service whose loop was blocked twice, and what could be seen of it.

    Attributes:
        while_waiting: /healthz and /readyz during the first block, which lets other threads run.
        after_waiting: /healthz after it.
        asked: events of SIGUSR1, sent during the first block and after it.
        answered: when a /healthz sent in the second block was answered; native code held the GIL until then.
        after_held: /healthz after it.
        dumps: number of stack dumps at the end, by the metric.
        service: has ended.
    """

    while_waiting: tuple[Answer, Answer]
    after_waiting: Answer
    asked: list[dict[str, Any]]
    answered: datetime
    after_held: Answer
    dumps: float
    service: Service


@pytest.fixture(scope="module")
def stuck(bootstrap: str, compiled: None, tmp_path_factory: pytest.TempPathFactory) -> Stuck:  # noqa: ARG001  # needed for its effect
    """See `Stuck`."""
    topics = fresh_topics(bootstrap)
    seconds = str(_STUCK_SECONDS)
    program = ("tests.stream.hindered", "--wait", seconds, "--hold", seconds, "--")
    first, second = _articles(2)
    with Service(tmp_path_factory.mktemp("stuck"), bootstrap, topics, _PATIENCE, program=program, loads=True) as one:
        one.wait_ready()
        produce(bootstrap, topics.input, [first])
        wait_until(lambda: one.ask("/healthz").status == 503, "the loop is stuck")
        while_waiting = one.ask("/healthz"), one.ask("/readyz")
        os.kill(one.pid, signal.SIGUSR1)
        wait_until(lambda: len(one.events("stacks_asked_for")) == 1, "the stacks that were asked for")
        collect(bootstrap, topics, 1, one)
        wait_until(lambda: bool(one.events("loop_goes_on")), "it goes on")
        after_waiting = one.ask("/healthz")
        os.kill(one.pid, signal.SIGUSR1)
        wait_until(lambda: len(one.events("stacks_asked_for")) == 2, "the stacks that were asked for")
        produce(bootstrap, topics.input, [second])
        wait_until(lambda: _HELD in one.log(), "the timer tells")
        one.ask("/healthz")
        answered = datetime.now(UTC)
        collect(bootstrap, topics, 2, one)
        wait_until(lambda: bool(one.events("interpreter_held")), "it is over")
        wait_until(lambda: one.ask("/healthz").status == 200, "it goes on")
        found = Stuck(
            while_waiting,
            after_waiting,
            one.events("stacks_asked_for"),
            answered,
            one.ask("/healthz"),
            _dumps(one),
            one,
        )
        one.stop()
    return found


def _dumps(service: Service) -> float:
    (dumps,) = service.metrics().series("stack_dumps_total")
    return dumps


def test_liveness_fails_while_the_loop_stands_still(stuck: Stuck) -> None:
    """And recovers after it; readiness is not affected."""
    alive, ready = stuck.while_waiting
    assert alive.status == 503
    assert re.fullmatch(r"the poll loop has been silent for [1-9]\d* s\n", alive.text)
    assert ready.status == 200
    assert (stuck.after_waiting.status, stuck.after_held.status) == (200, 200)


def test_stuck_loop_tells_once_what_all_threads_are_at(stuck: Stuck) -> None:
    """The main thread's stack ends where it is blocked, and the other threads' stacks are there too."""
    told = [event for event in stuck.service.events("loop_stuck") if "in _wait" in event["stack"]]
    assert len(told) == 1
    assert told[0]["level"] == "error"
    threads = re.findall(r"^thread (\S+) \(\d+\):$", told[0]["stack"], re.MULTILINE)
    assert threads[0] == "MainThread"
    assert {"http", "reader_0", "reclaim", "watchdog"} <= set(threads)
    main = told[0]["stack"].split("\nthread ")[0]
    assert "in commit" in main
    assert "in _wait" in main.splitlines()[-2]
    assert max(event["seconds"] for event in stuck.service.events("loop_goes_on")) >= _STUCK_SECONDS - 1


def test_stacks_can_be_asked_for_at_any_time(stuck: Stuck) -> None:
    """SIGUSR1 ends nothing, whether or not the loop is stuck; each dump is counted."""
    at_standstill, at_work = (event["stack"].split("\nthread ")[0] for event in stuck.asked)
    assert "in _wait" in at_standstill
    assert "in _wait" not in at_work
    told = ("loop_stuck", "stacks_asked_for", "interpreter_held")
    assert stuck.dumps == sum(len(stuck.service.events(name)) for name in told) >= 4


def test_interpreter_that_native_code_holds_is_told_without_it(stuck: Stuck) -> None:
    """No Python runs then, and no probe is answered: the stacks come as plain text, in time."""
    dump = stuck.service.log().partition(_HELD)[0].rpartition("Timeout (0:00:03")[2]
    assert "(most recent call first):" in dump
    assert "\n{" not in dump
    (held,) = (event for event in stuck.service.events("interpreter_held") if event["seconds"] >= _STUCK_SECONDS - 1)
    assert stuck.answered > datetime.fromisoformat(held["timestamp"]) - timedelta(seconds=1.5)


# ------------------------------------------------------------------------------------------------------ the start


@dataclass(frozen=True, slots=True)
class Started:
    """What the probes said while a service restored its state.

    Attributes:
        lines: those of /startupz with status 503, in order, without repeats.
        ready: what /readyz said at one point.
        alive: what /healthz said.
        at_end: the final /startupz.
    """

    lines: list[str]
    ready: Answer
    alive: Answer
    at_end: Answer


@pytest.fixture(scope="module")
def started(bootstrap: str, compiled: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:  # noqa: ARG001  # the same
    """A service whose state is lost, and whose changelog is read slowly."""
    topics, directory = fresh_topics(bootstrap), tmp_path_factory.mktemp("started")
    produce(bootstrap, topics.input, _articles(_COUNT))
    with Service(directory, bootstrap, topics, "commit.articles=8") as service:
        collect(bootstrap, topics, _COUNT, service)
        service.stop()
    shutil.rmtree(directory / "state")
    program = ("tests.stream.hindered", "--replay-pause", "0.05", "--")
    with Service(directory, bootstrap, topics, program=program, loads=True) as service:
        wait_until(lambda: _RESTORING.fullmatch(service.ask("/startupz").text) is not None, "it restores")
        ready, alive, lines = service.ask("/readyz"), service.ask("/healthz"), [""]
        while (answer := service.ask("/startupz")).status == 503:
            lines += [answer.text] if answer.text != lines[-1] else []
        yield Started(lines[1:], ready, alive, answer)
        service.stop()


def test_start_up_reports_how_far_the_restore_is(started: Started) -> None:
    """The number of records left decreases, the total stays the same, and the line estimates the time left."""
    told = [
        [int(number.replace(",", "")) for number in match.groups()]
        for match in map(_RESTORING.match, started.lines)
        if match
    ]
    left, total = [one for one, _ in told], {of for _, of in told}
    assert len(left) > 5
    assert left == sorted(left, reverse=True)
    assert left[0] > left[-1] > 0
    assert len(total) == 1
    assert total.pop() > _COUNT // 8
    assert (started.at_end.status, started.at_end.text) == (200, "ok\n")


def test_service_that_restores_is_alive_and_not_ready(started: Started) -> None:
    """A liveness probe must not kill it, and it must not pass for a standby."""
    assert (started.alive.status, started.alive.text) == (200, "ok\n")
    assert started.ready.status == 503
    assert started.ready.text.startswith("waiting for the changelog to be replayed")


def test_service_that_judges_in_silence_is_no_standby(bootstrap: str, compiled: None, tmp_path: Path) -> None:  # noqa: ARG001  # needed for its effect
    """It is restoring its state from the input: it says so, and cannot be mistaken for a standby."""
    topics = fresh_topics(bootstrap)
    produce(bootstrap, topics.input, _articles(24))
    with Service(tmp_path, bootstrap, topics) as service:
        collect(bootstrap, topics, 24, service)
        service.stop()
    shutil.rmtree(tmp_path / "state")
    for name in changelogs(bootstrap, topics):
        delete_topic(bootstrap, name)
    program = ("tests.stream.hindered", "--silence-pause", "1", "--")
    with Service(tmp_path, bootstrap, topics, "commit.articles=8", program=program, loads=True) as service:
        wait_until(lambda: "to be judged again" in service.ask("/readyz").text, "it judges in silence")
        assert service.metrics().by("role", "role") == {("restoring",): 1}
        service.wait_ready()
        assert service.metrics().by("role", "role") == {("active",): 1}
        service.stop()


def test_commit_that_is_long_in_coming_is_no_standstill(bootstrap: str, compiled: None, tmp_path: Path) -> None:  # noqa: ARG001  # needed for its effect
    """If messages are collected for longer than a loop may be silent, the loop keeps turning meanwhile."""
    topics = fresh_topics(bootstrap)
    with Service(tmp_path, bootstrap, topics, _PATIENCE, "commit.interval_ms=6000") as service:
        service.wait_ready()
        produce(bootstrap, topics.input, _articles(1))
        told = []

        def committed() -> bool:
            told.append(service.ask("/healthz").status)
            return sum(service.metrics().series("articles_total")) == 1

        wait_until(committed, "the article is committed")
    assert set(told) == {200}
