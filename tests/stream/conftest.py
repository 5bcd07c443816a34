"""What tests on a broker share: the broker, compiled loops, a schema registry, and the logs of services.

Knows how a session starts and how a failure is shown; knows nothing of what a test expects.
"""

import sys
from collections.abc import Generator, Iterator

import pytest

from deploy.broker import kafka_for_session
from stream_dedup import Article, Deduplicator
from stream_dedup.stream.input import source
from tests.stream.fork_server import fork_server
from tests.stream.schemas import SchemaServer, schema_server
from tests.stream.service import Service
from tests.stream.writing import Stage, staged


@pytest.fixture(scope="session")
def bootstrap() -> Iterator[str]:
    """Address of a real Kafka. Without one, tests fail and say why: they are never skipped."""
    with kafka_for_session() as address:
        yield address


@pytest.fixture
def stage(bootstrap: str) -> Iterator[Stage]:
    """Topics on the session's broker."""
    with staged(bootstrap) as made:
        yield made


@pytest.fixture(scope="session")
def compiled() -> None:
    """Compile the loops once, on a machine that has not done so, so that services then start in seconds."""
    if Service.forks:
        fork_server()
        return
    with Deduplicator() as engine:
        engine.add_batch([Article(str(n), f"第{n}篇文章，有 {n} 个数字和足够多的词语可以比较。" * 3) for n in range(3)])


@pytest.fixture
def registry() -> Iterator[SchemaServer]:
    """Return a registry for this test alone."""
    with schema_server() as server:
        yield server


@pytest.fixture
def looks_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sources hear what the group has to say whenever they keep alive, not only twice a minute."""
    monkeypatch.setattr(source, "_KEEP_ALIVE_SECONDS", 0.0)


@pytest.fixture(autouse=True, scope="session")
def _services_are_forked() -> Iterator[None]:
    """Save each service the seconds that loading takes; see `Service` for those that load all the same."""
    Service.forks = sys.platform == "linux"
    yield
    Service.forks = False


@pytest.fixture(autouse=True)
def _forget_ended_services() -> None:
    """Keep the logs of earlier tests' services out of this one's report."""
    Service.started = [service for service in Service.started if service.running]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the end of each service's log with a failure."""
    report = yield
    if report.failed:
        for service in Service.started:
            report.sections.append((f"log of the service {service.pid}", service.log_tail()))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what tests have measured, as recorded with `record_property`."""
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            terminalreporter.write_line(f"{name}: {value}")
