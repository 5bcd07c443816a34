"""Turns: one thread at a time, and one that is no question waits for few of them."""

import threading
import time
from collections.abc import Callable

import pytest

from stream_dedup.ask.turns import Turns

_QUESTIONS = 20


def test_upkeep_waits_for_one_question_or_two_of_many() -> None:
    """While many questions wait, and more keep coming, another thread's turn still comes soon."""
    turns, held, order = Turns(), threading.Event(), list[str]()

    def ask() -> None:
        for _ in range(3):
            with turns.question():
                order.append("question")
                time.sleep(0.002)

    def keep_up() -> None:
        with turns.upkeep():
            order.append("upkeep")

    def hold() -> None:
        with turns.question():
            held.wait()

    holder = _started(hold)
    waiting = [_started(ask) for _ in range(_QUESTIONS)]
    time.sleep(0.1)  # until all of them wait
    waiting.append(_started(keep_up))
    time.sleep(0.05)
    held.set()
    for thread in (holder, *waiting):
        thread.join()
    assert order.count("question") == 3 * _QUESTIONS
    assert order.index("upkeep") <= 2


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
    other.join(10)
    assert not other.is_alive()


def _ask(turns: Turns) -> None:
    with turns.question():
        pass


def _started(run: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=run)
    thread.start()
    return thread
