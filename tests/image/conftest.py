"""The image, built once, and the broker for testing it."""

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from deploy.broker import kafka_for_session
from stream_dedup import __version__
from tests.image.containers import Containers, check_tools

_REPOSITORY = Path(__file__).parents[2]
_REVISION = "0123456789abcdef"


@dataclass(frozen=True, slots=True)
class Built:
    """The image.

    Attributes:
        containers: the store that has it.
        name: in the store.
        base: the image it was built on.
        seconds: how long the build took.
    """

    containers: Containers
    name: str
    base: str
    seconds: float


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Built]:
    """The image, built as `make image` does, on a base like the one in the registry."""
    check_tools()
    with closing(Containers(tmp_path_factory.mktemp("containers"))) as containers:
        base = containers.base()
        began = time.monotonic()
        arguments = {"BASE": base, "TARGETARCH": "amd64", "VERSION": __version__, "REVISION": _REVISION}
        name = containers.build(
            _REPOSITORY, _REPOSITORY / "deploy/docker/Dockerfile", "localhost/stream-dedup:test", arguments
        )
        yield Built(containers, name, base, time.monotonic() - began)


@pytest.fixture(scope="session")
def bootstrap() -> Iterator[str]:
    """Address of a real Kafka."""
    with kafka_for_session() as address:
        yield address


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what tests have measured, as recorded with `record_property`."""
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            terminalreporter.write_line(f"{name}: {value}")
