"""Reports of failing tests show the services' logs, as in tests/stream."""

from tests.stream.conftest import _forget_ended_services, _services_are_forked, compiled, pytest_runtest_makereport

__all__ = ["_forget_ended_services", "_services_are_forked", "compiled", "pytest_runtest_makereport"]
