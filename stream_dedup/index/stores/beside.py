"""Reading a store while another process writes to it.

Knows what the writer may take away meanwhile; knows nothing of what is read.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from stream_dedup.index.stores.store import StoreDamagedError

_ATTEMPTS = 3

_Value = TypeVar("_Value")


def read_beside_writer(read: Callable[[], _Value]) -> _Value:
    """Return what `read` returns. If it meets a missing file, it is called again.

    The writer may have merged that file away since its name was read.

    Args:
        read: opens or reads a store from the beginning at each call.

    Raises:
        StoreDamagedError: the last of three calls met damage as well.
    """
    for _ in range(_ATTEMPTS - 1):
        with suppress(StoreDamagedError):
            return read()
    return read()
