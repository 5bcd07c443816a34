"""The service whose state the tools are tried on.

Knows how it is run; knows nothing of the tools.
"""

from collections.abc import Iterator

import pytest

from tests.stream.state.site import Site, running_site


@pytest.fixture(scope="module")
def site(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A service that has read a whole sample stream."""
    with running_site(bootstrap, tmp_path_factory.mktemp("site")) as one:
        yield one
