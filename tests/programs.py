"""Programs that tests want and that no package of Python has.

Knows how one is found, and what happens without it; knows nothing of what it does.
"""

import os
import shutil
from typing import NoReturn

import pytest


def found(*names: str, how: str, required: str = "") -> str:
    """Return where a program is: as `$NAME` says, by its first name, or on the path.

    Args:
        names: that it has, here and there.
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
    """Skip the test and say what is missing; fail where a variable says that it must be there, as CI does."""
    if os.environ.get(required):
        pytest.fail(what)
    pytest.skip(what)
