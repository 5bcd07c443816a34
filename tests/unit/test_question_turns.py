"""Turns: one thread at a time, and one that is no question waits for few of them."""

import threading
import time
from collections.abc import Callable
from statistics import median

import pytest

from stream_dedup.ask.turns import Turns
from tests.stream.waiting import PATIENCE_SECONDS, wait_until

_QUESTIONS, _UPKEEPS = 20, 9


def test_upkeep_waits_for_one_question_or_two_of_many() -> None:
    """While many questions wait, and more keep coming, another thread's turn still comes soon."""
    turns, over, asked, waited = Turns(), threading.Event(), list[None](), list[int]()

    def ask() -> None:
        while not over.is_set():
            with turns.question():
                asked.append(None)
                time.sleep(0.002)

    questions = [_started(ask) for _ in range(_QUESTIONS)]
    for _ in range(_UPKEEPS):
        # By then all of them are in line again.
        begin = len(asked) + _QUESTIONS
        wait_until(lambda: len(asked) >= begin, "questions have their turns")  # noqa: B023  # called at once
        before = len(asked)
        with turns.upkeep():
            waited.append(len(asked) - before)
    over.set()
    for thread in questions:
        thread.join()
    # A busy machine may keep this thread from its place in line once or twice.
    assert median(waited) <= 2


def test_one_thread_at_a_time() -> None:
    """Neither two questions nor a question and something else overlap; upkeep within a question does not wait."""
    turns, inside, most = Turns(), [0], [0]

    def noted() -> None:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        time.sleep(0.001)
        inside[0] -= 1

    def ask() -> None:
        with turns.question(), turns.upkeep():
            noted()

    def keep_up() -> None:
        with turns.upkeep():
            noted()

    threads = [_started(run) for run in [ask, keep_up] * 10]
    for thread in threads:
        thread.join()
    assert most == [1]


def test_question_that_fails_lets_others_go_on() -> None:
    """Its turn ends with it."""
    turns = Turns()
    with pytest.raises(ZeroDivisionError), turns.question():
        _ = 1 / 0
    other = _started(lambda: _ask(turns))
    other.join(PATIENCE_SECONDS)
    assert not other.is_alive()


def _ask(turns: Turns) -> None:
    with turns.question():
        pass


def _started(run: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=run)
    thread.start()
    return thread
