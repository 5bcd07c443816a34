"""The log of a Prometheus under test: where it listens, and whether it answers."""

import pytest

from deploy.prometheus.server import address_in

_READY = 'level=info msg="Server is ready to receive web requests."'
_TWO = 'caller=tls_config.go:232 level=info component=web msg="Listening on" address=127.0.0.1:9090'
_THREE = 'level=INFO source=tls_config.go:347 msg="Listening on" component=web address=127.0.0.1:9090'


@pytest.mark.parametrize("listening", [_TWO, _THREE])
def test_versions_differ_in_where_the_address_is(listening: str) -> None:
    """Prometheus 3 names the component between message and address; either line may come first."""
    assert address_in(f"{listening}\n{_READY}\n") == "127.0.0.1:9090"
    assert address_in(f"{_READY}\n{listening}\n") == "127.0.0.1:9090"


@pytest.mark.parametrize("log", ["", f"{_READY}\n", f"{_TWO}\n"])
def test_it_does_not_answer_yet(log: str) -> None:
    """One of the two lines is not enough."""
    assert address_in(log) is None
