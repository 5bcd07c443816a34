"""What the scenarios run on; reports of failing tests show the services' logs, as in tests/stream."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.proxy import PASS
from tests.faults.stage import Run, Stage, new_run, new_stage
from tests.stream.conftest import _forget_ended_services, _services_are_forked, compiled, pytest_runtest_makereport

__all__ = ["_forget_ended_services", "_services_are_forked", "compiled", "pytest_runtest_makereport"]


@pytest.fixture(scope="session")
def stage(compiled: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:  # noqa: ARG001  # needed for its effect
    """The stage of all scenarios of this process."""
    with new_stage(tmp_path_factory.mktemp("undisturbed")) as stage:
        yield stage


@pytest.fixture(autouse=True)
def _connection_is_restored(request: pytest.FixtureRequest) -> Iterator[None]:
    """Leave the stage's broker within reach, whatever a test did to its proxy, and even if it failed."""
    stage: Stage | None = request.getfixturevalue("stage") if "stage" in request.fixturenames else None
    yield
    if stage is not None:
        stage.proxy.set(PASS)


@pytest.fixture
def run(stage: Stage, tmp_path: Path) -> Iterator[Run]:
    """A run with its own outputs."""
    with new_run(stage, tmp_path) as run:
        yield run
