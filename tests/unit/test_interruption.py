"""Signals end a program with a KeyboardInterrupt, whatever the code that they interrupt makes of it.

Runs within this process; knows nothing of the programs that are interrupted.
"""

import signal

import pytest
from confluent_kafka.admin import AdminClient

from deploy.interruption import ignore_signals, interruptible

_SIGNALS = signal.SIGINT, signal.SIGTERM


class _Interrupting:
    """A setting of the Kafka client during whose conversion, by compiled code, a signal comes."""

    def __str__(self) -> str:
        signal.raise_signal(signal.SIGTERM)
        return "client.id"


@pytest.mark.parametrize("number", _SIGNALS)
def test_signal_is_an_interruption(number: signal.Signals) -> None:
    """Ctrl-C and SIGTERM end the context alike."""
    with pytest.raises(KeyboardInterrupt), interruptible():
        signal.raise_signal(number)


def test_interruption_of_the_kafka_client_is_one() -> None:
    """The client's compiled code replaces the exception by a TypeError, which is not what ends the context."""
    with pytest.raises(KeyboardInterrupt) as raised, interruptible():
        AdminClient({_Interrupting(): "x"})  # type: ignore[dict-item]
    assert isinstance(raised.value.__cause__, (SystemError, TypeError))


def test_errors_of_the_program_stay_errors() -> None:
    """Without a signal, an exception of the same type passes."""
    with pytest.raises(TypeError, match="a fault"), interruptible():
        raise TypeError("a fault")


@pytest.mark.parametrize(("once", "cleaned"), [(True, ["cleaned"]), (False, [])])
def test_only_the_first_signal_interrupts_if_wished(*, once: bool, cleaned: list[str]) -> None:
    """With `once`, a second signal does not cut the cleanup short; without it, it does."""
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt), interruptible(once=once):
        _interrupted_twice(done)
    assert done == cleaned


def _interrupted_twice(done: list[str]) -> None:
    try:
        signal.raise_signal(signal.SIGINT)
    finally:
        signal.raise_signal(signal.SIGTERM)
        done.append("cleaned")


def test_ignored_signals_do_not_interrupt() -> None:
    """Nor would a program started from here ignore them: the handler is not SIG_IGN."""
    with interruptible():
        ignore_signals()
        for number in _SIGNALS:
            signal.raise_signal(number)
            assert signal.getsignal(number) is not signal.SIG_IGN
