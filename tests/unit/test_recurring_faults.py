"""Recurring faults are logged at most once per period, and all are counted."""

import threading
import time
from collections.abc import Callable
from typing import NoReturn

import pytest
from structlog.testing import capture_logs

from stream_dedup.observe.recurring_faults import RecurringFaults

_PERIOD_SECONDS = 0.2
_PATIENCE_SECONDS = 60.0  # for what must happen on a busy machine


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(_PERIOD_SECONDS / 20)


def test_first_is_told_at_once_and_the_others_by_their_number() -> None:
    """The line at the end of the period describes the last one."""
    faults = RecurringFaults(_PERIOD_SECONDS)
    with capture_logs() as lines:
        for number in range(5):
            faults.warning("input_waits", error="_TRANSPORT", detail=f"try {number}")
        assert lines[0] == {"event": "input_waits", "log_level": "warning", "error": "_TRANSPORT", "detail": "try 0"}
        # Two lines, unless all five took longer than a period.
        _wait(lambda: sum(line.get("repeated", 1) for line in lines) == 5)
    assert lines[-1]["detail"] == "try 4"


def test_what_goes_on_is_told_each_period_and_every_one_is_counted() -> None:
    """The lines and their `repeated` add up to the number of faults, even from several threads."""
    faults, count = RecurringFaults(_PERIOD_SECONDS), 400

    def complain() -> None:
        for _ in range(count // 4):
            faults.warning("input_waits", error="_TRANSPORT", detail="")
            time.sleep(8 * _PERIOD_SECONDS / count)  # two periods in all: the first may end late

    with capture_logs() as lines:
        began = time.monotonic()
        threads = [threading.Thread(target=complain) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # If all threads were delayed for a period, the next line counts as a first one again.
        _wait(lambda: sum(line.get("repeated", 1) for line in lines) == count)
        periods = (time.monotonic() - began) / _PERIOD_SECONDS
    assert 3 <= len(lines) <= periods + 2


def test_those_that_differ_in_event_or_error_are_told_by_themselves() -> None:
    """Each is logged at once, at its own level."""
    faults = RecurringFaults(_PERIOD_SECONDS)
    with capture_logs() as lines:
        faults.warning("input_waits", error="_TRANSPORT")
        faults.warning("input_waits", error="_RESOLVE")
        faults.error("message_not_decoded", error="_TRANSPORT")
    assert [(line["event"], line["error"], line["log_level"]) for line in lines] == [
        ("input_waits", "_TRANSPORT", "warning"),
        ("input_waits", "_RESOLVE", "warning"),
        ("message_not_decoded", "_TRANSPORT", "error"),
    ]


def test_after_a_quiet_period_the_next_one_is_a_first_one() -> None:
    """It is logged at once again, without a number."""
    faults = RecurringFaults(_PERIOD_SECONDS)
    with capture_logs() as lines:
        before = set(threading.enumerate())
        faults.warning("input_waits", error="_TRANSPORT")
        for period in set(threading.enumerate()) - before:
            period.join(_PATIENCE_SECONDS)
        faults.warning("input_waits", error="_TRANSPORT")
    assert [line.get("repeated") for line in lines] == [None, None]


def test_fault_for_which_there_is_no_thread_is_told_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a thread no period can end, and whoever tells the fault is not to fail for that."""
    faults = RecurringFaults(_PERIOD_SECONDS)

    def refuse(_timer: threading.Timer) -> NoReturn:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full, capture_logs() as lines:
        full.setattr(threading.Timer, "start", refuse)
        for number in range(2):
            faults.warning("input_waits", error="_TRANSPORT", detail=f"try {number}")
    assert [line["detail"] for line in lines] == ["try 0", "try 1"]
