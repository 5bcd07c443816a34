"""Exceptions of the package pass from one process to another.

Knows every exception class; knows nothing of when one is raised.
"""

import importlib
import pickle
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from inspect import getmembers, isclass
from pathlib import Path

import pytest
from pydantic import ValidationError

import stream_dedup
from stream_dedup.api.problems import Code, RefusedError
from stream_dedup.decode.reason import Reason, UndecodableError
from stream_dedup.evaluate.runner.workers import WorkerLostError
from stream_dedup.planner.search import Limits, UnreachableError
from stream_dedup.settings import StateSettings
from stream_dedup.settings.kinds import NestedSettingsError
from stream_dedup.stream.kafka.clients import PropertyError
from stream_dedup.stream.state.changelog import ChangelogLostError


def _invalid() -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        StateSettings.model_validate({"cache_bytes": "many"})
    return caught.value


# Of those that are not made with a text.
_MADE: list[Exception] = [
    UndecodableError(Reason.INVALID_JSON, "it is none"),
    RefusedError(422, Code.INVALID, "it is wrong"),
    UnreachableError(0.9, Limits(memory=1.0), None, Limits(2.0, 3.0)),
    NestedSettingsError(("shadow", "verify"), _invalid()),
    PropertyError({"sasl.password": "it is missing"}, "and more"),
    ChangelogLostError("changelog", 3, 5),
    WorkerLostError(),
]


def _kinds() -> Iterator[type[Exception]]:
    for module in pkgutil.walk_packages(stream_dedup.__path__, "stream_dedup."):
        for _, kind in getmembers(importlib.import_module(module.name), isclass):
            if kind.__module__ == module.name and issubclass(kind, Exception):
                yield kind


def check_all() -> None:
    """Check that the kind, the text and the attributes of each arrive."""
    made = {type(error) for error in _MADE}
    for error in [*_MADE, *(kind("told") for kind in _kinds() if kind not in made)]:
        again = pickle.loads(pickle.dumps(error))  # noqa: S301  # our own
        assert (type(again), str(again)) == (type(error), str(error)), type(error)
        assert {*vars(again)} == {*vars(error)}, type(error)


@pytest.mark.slow
def test_every_exception_can_be_pickled() -> None:
    """As a process pool does with what a worker raises. In a process of its own: it loads every module there is."""
    code = f"from {__name__} import check_all; check_all()"
    subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=True, timeout=120)
