"""What Kafka's client says, and how it is passed on: without secrets, and as a warning only if it is one."""

import logging

import pytest
from structlog.testing import capture_logs

from stream_dedup.settings import SettingsError, load_settings
from stream_dedup.stream.kafka.clients import RdkafkaLogger, check_properties


def _told(*flags: str) -> str:
    with pytest.raises(SettingsError) as told:
        check_properties(load_settings(flags=[f"kafka.{flag}" for flag in flags]))
    return str(told.value)


def test_secret_that_the_client_quotes_is_hidden() -> None:
    """It says which value it refuses."""
    told = _told("sasl.oauthbearer.assertion.algorithm=hunter2")
    assert 'Invalid value "[redacted]" for configuration property "sasl.oauthbearer.assertion.algorithm"' in told
    assert "hunter2" not in told


def test_empty_secret_hides_nothing() -> None:
    """The empty text is between any two characters of a message."""
    told = _told("sasl.password=", "nonsense=7")
    assert told.startswith("kafka.nonsense = '7': No such configuration property: \"nonsense\" (")


@pytest.mark.parametrize(
    ("level", "line", "expected"),
    [
        (logging.ERROR, "Connect to 127.0.0.1:9 failed", ("warning", "kafka_client")),
        (logging.WARNING, "Disconnected", ("warning", "kafka_client")),
        (logging.INFO, "Disconnected while idle", ("debug", "kafka_client_debug")),
        (logging.WARNING, "Broker: Coordinator load in progress: retrying", ("debug", "kafka_client_debug")),
    ],
)
def test_what_the_client_logs(level: int, line: str, expected: tuple[str, str]) -> None:
    """Connection problems are warnings; that a broker has just started, and what is only information, is not."""
    with capture_logs() as logs:
        RdkafkaLogger().log(level, "%s %s", "FAIL", line)
    (logged,) = logs
    assert (logged["log_level"], logged["event"]) == expected
    assert logged["detail"] == f"FAIL {line}"
