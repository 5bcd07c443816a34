"""Programs that tests need and that no Python package has.

Knows how to find one, and what happens without it; knows nothing of what it does.
"""

import os
import shutil
from typing import NoReturn

import pytest


def found(*names: str, how: str, required: str = "") -> str:
    """Return the path of a program: from the variable of its first name (`$HELM` for helm), or from PATH.

    Args:
        names: that it has on various systems.
        how: to get it.
        required: see `missing`; `NAME_REQUIRED` unless given.
    """
    variable = names[0].upper()
    path = os.environ.get(variable) or next(filter(None, map(shutil.which, names)), None)
    if path is None:
        wanted = f"no {names[0]} is installed, which this wants: {how}, or name one by {variable}=/path"
        missing(wanted, required or f"{variable}_REQUIRED")
    return path


def missing(what: str, required: str) -> NoReturn:
    """Skip the test and say what is missing; fail if a variable says it must be there, as in CI."""
    if os.environ.get(required):
        pytest.fail(what)
    pytest.skip(what)
