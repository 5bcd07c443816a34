"""Probes while a real service starts, restores, works and is stuck, and what the log says when it is stuck.

Knows paths, lines and signals; knows nothing of decisions.
"""

import os
import re
import select
import shutil
import signal
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from deploy.demo.samples.corpus import base_texts
from tests.stream.hindered import made_gate, open_gate
from tests.stream.messages import Incoming, article, produce
from tests.stream.records import collect
from tests.stream.service import Answer, Service
from tests.stream.topics import changelogs, delete_topic, fresh_topics
from tests.stream.waiting import PATIENCE_SECONDS, wait_until

_STUCK_SECONDS = 3
_PATIENCE = f"http.stuck_seconds={_STUCK_SECONDS}"
_DUMPS = ("loop_stuck", "stacks_asked_for", "interpreter_held")
_HELD = " in _hold\n"  # as written by the timer that needs no GIL
_SOON_SECONDS = 0.3  # a probe is answered in a thousandth of it, if at all
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
        asked: events of SIGUSR1, sent during the first block and after it.
        answered: whether a /healthz sent in the second block was answered while native code held the GIL.
        dumps: number of stack dumps at the end, by the metric, and by the log.
        service: has ended.
    """

    while_waiting: tuple[Answer, Answer]
    asked: list[dict[str, Any]]
    answered: bool
    dumps: tuple[float, int]
    service: Service


@pytest.fixture(scope="module")
def stuck(bootstrap: str, compiled: None, tmp_path_factory: pytest.TempPathFactory) -> Stuck:  # noqa: ARG001  # needed for its effect
    """See `Stuck`."""
    topics, directory = fresh_topics(bootstrap), tmp_path_factory.mktemp("stuck")
    wait, hold = (made_gate(directory / name) for name in ("wait", "hold"))
    program = ("tests.stream.hindered", "--wait", str(wait), "--hold", str(hold), "--")
    first, second = _articles(2)
    with Service(directory, bootstrap, topics, _PATIENCE, program=program, loads=True) as one:
        one.wait_ready()
        produce(bootstrap, topics.input, [first])
        wait_until(lambda: bool(_stuck_in_wait(one)), "the loop is stuck")
        while_waiting = one.ask("/healthz"), one.ask("/readyz")
        os.kill(one.pid, signal.SIGUSR1)
        wait_until(lambda: len(one.events("stacks_asked_for")) == 1, "the stacks that were asked for")
        open_gate(wait)
        collect(bootstrap, topics, 1, one)
        wait_until(lambda: one.ask("/healthz").status == 200, "it goes on")
        os.kill(one.pid, signal.SIGUSR1)
        wait_until(lambda: len(one.events("stacks_asked_for")) == 2, "the stacks that were asked for")
        before = len(one.events("interpreter_held"))
        produce(bootstrap, topics.input, [second])
        wait_until(lambda: _HELD in one.log(), "the timer tells")
        with closing(HTTPConnection(*one.address, timeout=PATIENCE_SECONDS)) as probe:
            probe.request("GET", "/healthz")
            answered = bool(select.select([probe.sock], [], [], _SOON_SECONDS)[0])
            open_gate(hold)
            probe.getresponse().read()
        collect(bootstrap, topics, 2, one)
        wait_until(lambda: len(one.events("interpreter_held")) > before, "it is over")
        wait_until(lambda: one.ask("/healthz").status == 200, "it goes on")
        wait_until(lambda: len(set(_dumps(one))) == 1, "the metric and the log agree")
        found = Stuck(while_waiting, one.events("stacks_asked_for"), answered, _dumps(one), one)
        one.stop()
    return found


def _stuck_in_wait(service: Service) -> list[dict[str, Any]]:
    return [event for event in service.events("loop_stuck") if "in _wait" in event["stack"]]


def _dumps(service: Service) -> tuple[float, int]:
    (dumps,) = service.metrics().series("stack_dumps_total")
    return dumps, sum(len(service.events(name)) for name in _DUMPS)


def test_liveness_fails_while_the_loop_stands_still(stuck: Stuck) -> None:
    """And recovers after it; readiness is not affected."""
    alive, ready = stuck.while_waiting
    assert alive.status == 503
    assert re.fullmatch(r"the poll loop has been silent for [1-9]\d* s\n", alive.text)
    assert ready.status == 200


def test_stuck_loop_tells_once_what_all_threads_are_at(stuck: Stuck) -> None:
    """The main thread's stack ends where it is blocked, and the other threads' stacks are there too."""
    told = _stuck_in_wait(stuck.service)
    assert len(told) == 1
    assert told[0]["level"] == "error"
    threads = re.findall(r"^thread (\S+) \(\d+\):$", told[0]["stack"], re.MULTILINE)
    assert threads[0] == "MainThread"
    assert {"http", "reader_0", "watchdog"} <= set(threads)
    main = told[0]["stack"].split("\nthread ")[0]
    assert "in commit" in main
    assert "in _wait" in main.splitlines()[-2]
    assert max(event["seconds"] for event in stuck.service.events("loop_goes_on")) >= _STUCK_SECONDS


def test_stacks_can_be_asked_for_at_any_time(stuck: Stuck) -> None:
    """SIGUSR1 ends nothing, whether or not the loop is stuck; each dump is counted."""
    at_standstill, at_work = (event["stack"].split("\nthread ")[0] for event in stuck.asked)
    assert "in _wait" in at_standstill
    assert "in _wait" not in at_work
    assert stuck.dumps[0] == stuck.dumps[1] >= 4


def test_interpreter_that_native_code_holds_is_told_without_it(stuck: Stuck) -> None:
    """No Python runs then, and no probe is answered: the stacks come as plain text, in time."""
    dump = stuck.service.log().partition(_HELD)[0].rpartition("Timeout (0:00:03")[2]
    assert "(most recent call first):" in dump
    assert "\n{" not in dump
    assert not stuck.answered
    assert max(event["seconds"] for event in stuck.service.events("interpreter_held")) >= _STUCK_SECONDS


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
    silence = made_gate(tmp_path / "silence")
    program = ("tests.stream.hindered", "--silence", str(silence), "--")
    with Service(tmp_path, bootstrap, topics, "commit.articles=8", program=program, loads=True) as service:
        wait_until(lambda: "to be judged again" in service.ask("/readyz").text, "it judges in silence")
        assert service.metrics().by("role", "role") == {("restoring",): 1}
        open_gate(silence)
        service.wait_ready()
        assert service.metrics().by("role", "role") == {("active",): 1}
        service.stop()


def test_commit_that_is_long_in_coming_is_no_standstill(bootstrap: str, compiled: None, tmp_path: Path) -> None:  # noqa: ARG001  # needed for its effect
    """If messages are collected for longer than a loop may be silent, the loop keeps turning meanwhile."""
    topics = fresh_topics(bootstrap)
    with Service(tmp_path, bootstrap, topics, "http.stuck_seconds=5", "commit.interval_ms=8000") as service:
        service.wait_ready()
        produce(bootstrap, topics.input, _articles(1))
        told = []

        def committed() -> bool:
            told.append(service.ask("/healthz").status)
            return sum(service.metrics().series("articles_total")) == 1

        wait_until(committed, "the article is committed")
    assert set(told) == {200}
